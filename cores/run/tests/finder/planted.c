// A program with lines that two threads share, and lines that only look so. It prints their addresses, then "ready";
// at the end of its input it prints whether every count is right. Argument "exec": starts itself again
// first. Argument "filter": a filter of system calls would kill it for a userfaultfd.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAIRS = 20, COMMON = 4 };

// Two counters in one line: false sharing.
struct near {
    volatile uint64_t sent;
    volatile uint64_t received;
    uint64_t pad[14];
};
// Two counters in one word of one line.
struct tiny {
    volatile uint32_t sent;
    volatile uint32_t received;
    uint64_t pad[15];
};
// Each counter in a line of its own.
struct far {
    volatile uint64_t sent;
    uint64_t pad[7];
    volatile uint64_t received;
    uint64_t pad2[7];
};

struct near near_globals[6] __attribute__((aligned(128)));
struct near near_data[4] __attribute__((aligned(128))) = {{1, 1, {7}}, {1, 1, {7}}, {1, 1, {7}}, {1, 1, {7}}};
struct far far_globals[10] __attribute__((aligned(128)));
uint64_t common[COMMON * 16] __attribute__((aligned(128)));
volatile uint64_t constants[16] __attribute__((aligned(128))) = {3, 5};

static struct near *near_heap;
static struct tiny *tiny_heap;
static struct far *far_heap;
static volatile int stop;
static uint64_t loops[2 * 16] __attribute__((aligned(128)));
static volatile uint64_t guests;

static void *sender(void *unused) {
    prctl(PR_SET_NAME, "sender");
    uint64_t count = 0, seen = 0;
    for (; !stop; count++) {
        for (int i = 0; i < 6; i++) near_globals[i].sent++;
        for (int i = 0; i < 4; i++) near_data[i].sent++;
        for (int i = 0; i < 6; i++) near_heap[i].sent++;
        for (int i = 0; i < 4; i++) tiny_heap[i].sent++;
        for (int i = 0; i < 10; i++) far_globals[i].sent++;
        for (int i = 0; i < 10; i++) far_heap[i].sent++;
        for (int i = 0; i < COMMON; i++) __atomic_fetch_add(&common[16 * i], 1, __ATOMIC_RELAXED);
        seen += constants[0];
    }
    loops[0] = count;
    return (void *)(uintptr_t)(seen == 3 * count);
}

static void *receiver(void *unused) {
    prctl(PR_SET_NAME, "receiver");
    uint64_t count = 0, seen = 0;
    for (; !stop; count++) {
        for (int i = 0; i < 6; i++) near_globals[i].received++;
        for (int i = 0; i < 4; i++) near_data[i].received++;
        for (int i = 0; i < 6; i++) near_heap[i].received++;
        for (int i = 0; i < 4; i++) tiny_heap[i].received++;
        for (int i = 0; i < 10; i++) far_globals[i].received++;
        for (int i = 0; i < 10; i++) far_heap[i].received++;
        for (int i = 0; i < COMMON; i++) __atomic_fetch_add(&common[16 * i], 1, __ATOMIC_RELAXED);
        seen += constants[1];
    }
    loops[16] = count;
    return (void *)(uintptr_t)(seen == 5 * count);
}

static void *guest(void *unused) {
    prctl(PR_SET_NAME, "guest");
    guests++;
    usleep(1000);
    return NULL;
}

// A guest comes and goes every few milliseconds until the input ends.
static void *host(void *unused) {
    prctl(PR_SET_NAME, "host");
    uint64_t count = 0;
    for (; !stop; count++) {
        pthread_t one;
        if (pthread_create(&one, NULL, guest, NULL)) abort();
        pthread_join(one, NULL);
        usleep(5000);
    }
    return (void *)(uintptr_t)(count == guests);
}

static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "filter")) filter();
    if (argc > 1 && !strcmp(argv[1], "exec")) {
        sleep(1);
        execl("/proc/self/exe", argv[0], (char *)NULL);
    }
    if (posix_memalign((void **)&near_heap, 4096, 4096) || posix_memalign((void **)&tiny_heap, 4096, 4096)
        || posix_memalign((void **)&far_heap, 4096, 4096)) abort();
    memset(near_heap, 0, 4096), memset(tiny_heap, 0, 4096), memset(far_heap, 0, 4096);
    for (int i = 0; i < 6; i++) printf("planted %p\n", (void *)&near_globals[i]);
    for (int i = 0; i < 4; i++) printf("planted %p\n", (void *)&near_data[i]);
    for (int i = 0; i < 6; i++) printf("planted %p\n", (void *)&near_heap[i]);
    for (int i = 0; i < 4; i++) printf("planted %p\n", (void *)&tiny_heap[i]);
    for (int i = 0; i < 10; i++) printf("innocent %p\ninnocent %p\n", (void *)&far_globals[i].sent, (void *)&far_globals[i].received);
    for (int i = 0; i < 10; i++) printf("innocent %p\ninnocent %p\n", (void *)&far_heap[i].sent, (void *)&far_heap[i].received);
    for (int i = 0; i < COMMON; i++) printf("common %p\n", (void *)&common[16 * i]);
    printf("innocent %p\nready\n", (void *)constants);
    fflush(stdout);
    pthread_t threads[3];
    void *(*work[3])(void *) = {sender, receiver, host};
    for (int i = 0; i < 3; i++) if (pthread_create(&threads[i], NULL, work[i], NULL)) abort();
    char byte;
    while (read(0, &byte, 1) > 0) {
        // The counts so far, which show how fast it runs.
        printf("%lu %lu\n", near_heap[0].sent, near_heap[0].received);
        fflush(stdout);
    }
    stop = 1;
    int is_right = 1;
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        is_right &= result != NULL;
    }
    uint64_t sent = loops[0], received = loops[16];
    for (int i = 0; i < 6; i++) is_right &= near_globals[i].sent == sent && near_globals[i].received == received;
    for (int i = 0; i < 4; i++) is_right &= near_data[i].sent == sent + 1 && near_data[i].received == received + 1;
    for (int i = 0; i < 6; i++) is_right &= near_heap[i].sent == sent && near_heap[i].received == received;
    for (int i = 0; i < 4; i++) is_right &= tiny_heap[i].sent == (uint32_t)sent && tiny_heap[i].received == (uint32_t)received;
    for (int i = 0; i < 10; i++) is_right &= far_heap[i].sent == sent && far_globals[i].received == received;
    for (int i = 0; i < COMMON; i++) is_right &= common[16 * i] == sent + received;
    printf("%s\n", is_right ? "right" : "wrong");
    return !is_right;
}
