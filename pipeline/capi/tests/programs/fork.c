/*
 * A node that publishes while its process is forked in all usual ways. Arguments: SOCKET ROUNDS WAIT
 *
 * No child may act as its parent in the pipeline, or harm it. Prints the number of published records.
 */
#define _GNU_SOURCE
#include "lowlat.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(is_so)                                                                                         \
    do {                                                                                                      \
        if (!(is_so)) {                                                                                       \
            fprintf(stderr, "line %d: expected %s; %s\n", __LINE__, #is_so, lowlat_last_error());             \
            exit(3);                                                                                          \
        }                                                                                                     \
    } while (0)

static uint64_t published;
static bool has_begun, is_over;

static lowlat_status publish(lowlat_node *node)
{
    lowlat_stamp stamp = {.kind = 77};
    return lowlat_publish(node, &stamp, &published, sizeof published, NULL);
}

static void on_event(void *user, lowlat_node *node, const lowlat_event *event)
{
    (void)user;
    (void)node;
    has_begun |= event->kind == LOWLAT_EVENT_BEGIN;
    is_over |= event->kind == LOWLAT_EVENT_STOP;
}

static void never(void *user, lowlat_node *node, const lowlat_event *event)
{
    (void)user;
    (void)node;
    fprintf(stderr, "an event of kind %u\n", (unsigned)event->kind);
    exit(4);
}

/* Every function of the parent's node names its owner, and releasing it is silent. */
static void use_it(lowlat_node *node)
{
    lowlat_order order = {.side = LOWLAT_SIDE_BUY, .quantity = 1};
    size_t events = 0;
    EXPECT(publish(node) == LOWLAT_STATUS_FORKED);
    char owner[32];
    snprintf(owner, sizeof owner, "process %d", (int)getppid());
    EXPECT(strstr(lowlat_last_error(), owner) != NULL);
    EXPECT(lowlat_send_order(node, NULL, &order) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_cancel_order(node, NULL, 1, 1) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_positions(node, NULL, 0, &events) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_poll(node, never, NULL, &events) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_wait(node, UINT64_MAX) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_ended(node) == LOWLAT_STATUS_FORKED);
    EXPECT(lowlat_leave(node) == LOWLAT_STATUS_OK);
}

/* A child that takes part must join itself. */
static void join_too(const char *socket, int round)
{
    char name[32];
    snprintf(name, sizeof name, "child-%d", round);
    lowlat_node_options options = lowlat_node_options_default();
    options.socket = socket;
    options.name = name;
    options.role = "test";
    lowlat_node *node = NULL;
    EXPECT(lowlat_join(&options, &node) == LOWLAT_STATUS_OK);
    EXPECT(lowlat_wait(node, 0) == LOWLAT_STATUS_OK);
    EXPECT(lowlat_ended(node) == LOWLAT_STATUS_OK);
    EXPECT(lowlat_leave(node) == LOWLAT_STATUS_OK);
}

int main(int count, char **arguments)
{
    EXPECT(count == 4);
    lowlat_node_options options = lowlat_node_options_default();
    options.socket = arguments[1];
    options.name = "parent";
    options.role = "test";
    options.writes = "numbers";
    options.wait = (uint32_t)strtoul(arguments[3], NULL, 10);
    lowlat_node *node = NULL;
    EXPECT(lowlat_join(&options, &node) == LOWLAT_STATUS_OK);
    while (!has_begun) {
        EXPECT(lowlat_wait(node, UINT64_MAX) == LOWLAT_STATUS_OK);
        EXPECT(lowlat_poll(node, on_event, NULL, NULL) == LOWLAT_STATUS_OK);
    }
    int rounds = atoi(arguments[2]);
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            switch (round % 4) {
            case 0:
                use_it(node);
                exit(0);
            case 1:
                lowlat_leave(node);
                join_too(arguments[1], round);
                exit(0);
            case 2:
                execlp("true", "true", (char *)NULL);
                _exit(5);
            default: {
                /* A grandchild. */
                pid_t grandchild = fork();
                EXPECT(grandchild >= 0);
                if (grandchild == 0)
                    exit(publish(node) == LOWLAT_STATUS_FORKED && lowlat_leave(node) == LOWLAT_STATUS_OK ? 0 : 6);
                int status = 0;
                EXPECT(waitpid(grandchild, &status, 0) == grandchild && status == 0);
                exit(0);
            }
            }
        }
        int status = 0;
        /* The parent continues. */
        while (waitpid(child, &status, WNOHANG) == 0) {
            published++;
            EXPECT(publish(node) == LOWLAT_STATUS_OK);
            EXPECT(lowlat_poll(node, on_event, NULL, NULL) == LOWLAT_STATUS_OK);
            EXPECT(!is_over && lowlat_ended(node) == LOWLAT_STATUS_OK);
            EXPECT(lowlat_wait(node, lowlat_now_ns() + 1000000) == LOWLAT_STATUS_OK);
        }
        if (status != 0) {
            fprintf(stderr, "round %d: a child ended with status %d\n", round, status);
            return 1;
        }
    }
    EXPECT(system("true") == 0);
    published++;
    EXPECT(publish(node) == LOWLAT_STATUS_OK);
    printf("%" PRIu64 "\n", published);
    EXPECT(lowlat_leave(node) == LOWLAT_STATUS_OK);
    return 0;
}
