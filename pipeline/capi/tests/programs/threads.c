/*
 * A node that two threads use: calls of one are refused while the other waits, or is in its handler. Arguments: SOCKET
 */
#define _GNU_SOURCE
#include "lowlat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(is_so)                                                                                         \
    do {                                                                                                      \
        if (!(is_so)) {                                                                                       \
            fprintf(stderr, "line %d: expected %s; %s\n", __LINE__, #is_so, lowlat_last_error());             \
            exit(3);                                                                                          \
        }                                                                                                     \
    } while (0)

static atomic_int is_inside, may_go_on;

static void never(void *user, lowlat_node *node, const lowlat_event *event)
{
    (void)user;
    (void)node;
    fprintf(stderr, "an event of kind %u\n", (unsigned)event->kind);
    exit(4);
}

/* Holds the node's thread inside the handler. */
static void hold(void *user, lowlat_node *node, const lowlat_event *event)
{
    (void)user;
    (void)node;
    (void)event;
    is_inside = 1;
    while (!may_go_on)
        ;
}

static void *use_it(void *user)
{
    lowlat_node *node = user;
    size_t count = 0;
    lowlat_stamp stamp = {.kind = 77};
    while (!is_inside)
        ;
    EXPECT(lowlat_publish(node, &stamp, "x", 1, NULL) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_cancel_order(node, NULL, 1, 1) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_open_orders(node, NULL, 0, &count) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_poll(node, never, NULL, NULL) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_wait(node, 0) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_ended(node) == LOWLAT_STATUS_BUSY);
    EXPECT(lowlat_leave(node) == LOWLAT_STATUS_BUSY);
    may_go_on = 1;
    return NULL;
}

static void *leave(void *user)
{
    EXPECT(lowlat_leave(user) == LOWLAT_STATUS_OK);
    return NULL;
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    lowlat_node_options options = lowlat_node_options_default();
    options.socket = arguments[1];
    options.name = "shared";
    options.role = "test";
    options.writes = "numbers";
    lowlat_node *node = NULL;
    EXPECT(lowlat_join(&options, &node) == LOWLAT_STATUS_OK);
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, use_it, node) == 0);
    while (!is_inside) {
        EXPECT(lowlat_wait(node, UINT64_MAX) == LOWLAT_STATUS_OK);
        EXPECT(lowlat_poll(node, hold, NULL, NULL) == LOWLAT_STATUS_OK);
    }
    EXPECT(pthread_join(other, NULL) == 0);
    /* Threads may use it one after the other. */
    lowlat_stamp stamp = {.kind = 77};
    EXPECT(lowlat_publish(node, &stamp, "x", 1, NULL) == LOWLAT_STATUS_OK);
    EXPECT(pthread_create(&other, NULL, leave, node) == 0);
    EXPECT(pthread_join(other, NULL) == 0);
    return 0;
}
