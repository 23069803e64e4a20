// Programs whose threads use memory in one way each, named by the first argument. "ready" is printed when they do, and the
// addresses of what they use before it. The program runs until its input ends; "threads" and "signals" print how often they did so in
// each line of input.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef volatile uint64_t word;

static struct {
    word words[32];
} here __attribute__((aligned(256)));
static word *at = here.words;
static volatile uint64_t turn, count;
static int is_bound;

static void *writer(void *word_of) {
    for (;;) (*(word *)word_of)++;
    return NULL;
}
static void *reader(void *word_of) {
    uint64_t sum = 0;
    for (;;) sum += *(word *)word_of;
    return (void *)sum;
}
static void *slow(void *word_of) {
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        (*(word *)word_of)++;
        next.tv_nsec += 1000000;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return NULL;
}
// Bursts of 40 writes, 25 times a second.
static void *bursts(void *word_of) {
    for (;;) {
        for (int i = 0; i < 40; i++) (*(word *)word_of)++;
        usleep(40000);
    }
    return NULL;
}
static void *idle(void *unused) {
    pause();
    return unused;
}
static void *owner(void *number) {
    uint64_t own = (uint64_t)number;
    for (;;) {
        struct timespec now, begun;
        while (turn % 2 != own) usleep(200);
        clock_gettime(CLOCK_MONOTONIC, &begun);
        do {
            for (int i = 0; i < 1000; i++) at[own]++;
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < 30000000);
        turn++;
    }
    return NULL;
}
// Threads take the next slot of a ring, and its slots follow each other.
static void *producer(void *ring) {
    for (;;) {
        uint64_t slot = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        ((word *)ring)[slot % (1 << 20)] = slot;
        for (int i = 0; i < 100; i++) __asm__ volatile("pause");
    }
    return NULL;
}
struct sums {
    word tid, points, length, x, y, xx, yy, xy;
};
// As linear_regression does.
static void *regression(void *of) {
    struct sums *sums = of;
    for (;;)
        for (uint64_t i = 0; i < sums->length; i++) sums->x += i, sums->y += i, sums->xx += i, sums->yy += i, sums->xy += i;
    return NULL;
}
static void *none(void *unused) { return unused; }
static void *starts(void *unused) {
    for (;; count++) {
        pthread_t one;
        
        if (pthread_create(&one, NULL, none, NULL)) abort();
        pthread_join(one, NULL);
    }
    return unused;
}
static void got(int signal) { (void)signal; }
static void *raises(void *unused) {
    signal(SIGUSR1, got);
    for (;; count++) raise(SIGUSR1);
    return unused;
}
// Binds the calling thread to the n-th CPU of the program, so that they are apart.
static void bind(int number) {
    static cpu_set_t all;
    if (!CPU_COUNT(&all)) sched_getaffinity(0, sizeof all, &all);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0) CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(77);
}
static void start(void *(*work)(void *), volatile void *of) {
    static int number;
    pthread_t thread;
    if (!is_bound) bind(number++ % 2);
    if (pthread_create(&thread, NULL, work, (void *)of)) abort();
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    char *shape = argv[1];
    int is_shared = !strcmp(shape, "shared") || !strcmp(shape, "forked");
    if (is_shared) at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(shape, "idle")) {
        for (int i = 0; i < 20; i++) start(idle, NULL);
        start(writer, at), start(writer, at + 1);
    } else if (!strcmp(shape, "shared")) {
        start(writer, at), start(writer, at + 1);
    } else if (!strcmp(shape, "forked")) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            bind(1);
            writer((void *)(at + 1));
        }
        start(writer, at);
    } else if (!strcmp(shape, "slow")) {
        start(writer, at), start(slow, at + 1);
    } else if (!strcmp(shape, "bursts")) {
        start(writer, at), start(bursts, at + 1);
    } else if (!strcmp(shape, "readers")) {
        start(writer, at), start(reader, at + 1);
    } else if (!strcmp(shape, "only_read")) {
        start(reader, at), start(reader, at + 1);
    } else if (!strcmp(shape, "clean")) {
        start(writer, at), start(writer, at + 16);
    } else if (!strcmp(shape, "turns")) {
        start(owner, (void *)0), start(owner, (void *)1);
    } else if (!strcmp(shape, "one_cpu")) {
        bind(0);
        is_bound = 1;
        start(writer, at), start(writer, at + 1);
    } else if (!strcmp(shape, "ring")) {
        void *ring = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(ring, 8 << 20, MADV_NOHUGEPAGE);
        start(producer, ring), start(producer, ring);
    } else if (!strcmp(shape, "regression")) {
        struct sums *all = (struct sums *)(at + 5);
        all[0].length = all[1].length = 1000;
        start(regression, &all[0]), start(regression, &all[1]);
    } else if (!strcmp(shape, "huge")) {
        char *memory = aligned_alloc(2 << 20, 64 << 20);
        madvise(memory, 64 << 20, MADV_HUGEPAGE);
        memset(memory, 1, 64 << 20);
        at = (word *)(memory + (5 << 20));
        start(writer, at), start(writer, at + 1);
    } else if (!strcmp(shape, "threads")) {
        start(starts, NULL);
    } else if (!strcmp(shape, "signals")) {
        start(raises, NULL);
    } else {
        return 2;
    }
    printf("%p\nready\n", (void *)at);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
        printf("%lu\n", count);
        fflush(stdout);
    }
    _exit(0);
}
