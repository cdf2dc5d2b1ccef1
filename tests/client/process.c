/* What else may happen in a program that uses the library: children, signals, broken pipes. */
#include "suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static vigil_client *client_with(int own_thread)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.own_thread = own_thread;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    return client;
}

static int count_events(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    (void)watch;
    CHECK(batch->what != VIGIL_WATCH_ENDED);
    latch_add(user, (long)batch->event_count);
    return VIGIL_WATCH_CONTINUE;
}

static vigil_watch *watch_of(vigil_client *client, const char *key, int64_t revision,
                             struct latch *events)
{
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_watch_options_init(&options);
    options.key = vigil_text(key);
    options.revision = revision;
    CHECK(vigil_watch_new(client, &options, count_events, events, &watch) == VIGIL_OK);
    return watch;
}

/* In the program's loop, callbacks are made only while something drives the client. */
static void wait_for_events(vigil_client *client, struct latch *events, long count)
{
    for (int i = 0; latch_count(events) < count && i < 10000; i++)
        (void)must(vigil_get(client, vigil_text("anything")));
    CHECK(latch_count(events) == count);
}

/* -- Children -- */

/* A child that has everything the parent has, and ends when the pipe is closed. */
static pid_t start_child(int *ret_pipe)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 7 : 8);
    }
    close(ends[0]);
    *ret_pipe = ends[1];
    return child;
}

static void end_child(pid_t child, int pipe_end)
{
    int status;
    close(pipe_end);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* The child keeps the parent's sockets open: one that the parent has closed must not wake it. */
static void check_idle(void)
{
    clock_t before = clock();
    usleep(300 * 1000);
    CHECK(clock() - before < CLOCKS_PER_SEC / 10);
}

static void go_on_after_fork(int own_thread)
{
    struct latch events = LATCH_INIT;
    vigil_client *client = client_with(own_thread);
    long puts = 0;
    int pipe_end;
    int64_t first = put(client, "forked", "0");
    vigil_watch *watch = watch_of(client, "forked", first + 1, &events);
    pid_t child = start_child(&pipe_end);
    for (; puts < 50; puts++)
        put(client, "forked", "1");
    wait_for_events(client, &events, puts);
    ask("restart");
    must(vigil_get(client, vigil_text("forked"))); /* repeated until there is a connection */
    for (; puts < 100; puts++)
        put(client, "forked", "2");
    wait_for_events(client, &events, puts);
    check_idle();
    end_child(child, pipe_end);
    for (; puts < 150; puts++)
        put(client, "forked", "3");
    wait_for_events(client, &events, puts);
    vigil_watch_free(watch);
    vigil_client_free(client);
}

static void parent_goes_on_after_fork(void)
{
    go_on_after_fork(1);
    go_on_after_fork(0);
}

/* -- Signals -- */

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* Every millisecond; system calls are interrupted and not restarted. */
static void interrupt(int on)
{
    struct sigaction action = {.sa_handler = count_signal};
    struct itimerval every = {{0, on * 1000}, {0, on * 1000}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

static void go_on_with_signals(int own_thread)
{
    struct latch events = LATCH_INIT;
    vigil_client *client = client_with(own_thread);
    int64_t first = put(client, "interrupted", "0");
    vigil_watch *watch = watch_of(client, "interrupted", first + 1, &events);
    long puts = 0;
    signals = 0;
    interrupt(1);
    for (; puts < 200 || signals < 100; puts++)
        put(client, "interrupted", "1");
    wait_for_events(client, &events, puts);
    vigil_watch_free(watch);
    vigil_client_free(client);
    interrupt(0);
}

static void signals_do_not_disturb_calls(void)
{
    go_on_with_signals(1);
    go_on_with_signals(0);
}

/* -- SIGPIPE -- */

static void note_end(vigil_call *call, void *user)
{
    CHECK(vigil_call_error(call)->code == VIGIL_OK ||
          vigil_call_error(call)->outcome != VIGIL_REFUSED);
    vigil_call_free(call);
    latch_add(user, 1);
}

/* The server goes away while much is being written to it. */
static void write_into_the_void(int own_thread)
{
    enum { PUTS = 16, VALUE_BYTES = 500 * 1000 };
    static char value[VALUE_BYTES];
    struct latch ended = LATCH_INIT;
    vigil_client *client = client_with(own_thread);
    must(vigil_get(client, vigil_text("pipe")));
    for (int i = 0; i < PUTS; i++)
        CHECK(vigil_call_start(
                  vigil_put(client, vigil_text("pipe"), vigil_bytes_of(value, sizeof(value)), 0),
                  note_end, &ended) == VIGIL_OK);
    ask("restart");
    while (latch_count(&ended) < PUTS)
        must(vigil_get(client, vigil_text("pipe")));
    vigil_client_free(client);
}

/* With the default disposition, SIGPIPE would end the program. The library does not change it. */
static void broken_pipes_do_not_end_the_program(void)
{
    struct sigaction action;
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    write_into_the_void(1);
    write_into_the_void(0);
    CHECK(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

enum { FD_MAX = 1024 };

/* Calls a function for every number among the names of a directory. */
static void for_each_number(const char *path, void (*fn)(int number, void *user), void *user)
{
    DIR *directory = opendir(path);
    CHECK(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (end != entry->d_name && *end == '\0' && number != dirfd(directory))
            fn((int)number, user);
    }
    closedir(directory);
}

static unsigned long long blocked_signals(int thread)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
    FILE *file = fopen(path, "re");
    CHECK(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "SigBlk:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    }
    fclose(file);
    return mask;
}

static void check_thread(int thread, void *user)
{
    static const int left_alone[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPIPE};
    int *others = user;
    if (thread == getpid())
        return;
    ++*others;
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(left_alone[0]); i++)
        CHECK(blocked_signals(thread) & (1ull << (left_alone[i] - 1)));
}

static void threads_of_the_library_take_no_signals(void)
{
    int others = 0;
    vigil_client *client = client_with(1);
    put(client, "k", "v");
    for_each_number("/proc/self/task", check_thread, &others);
    CHECK(others > 0);
    vigil_client_free(client);
}

static void note_descriptor(int fd, void *user)
{
    bool *known = user;
    CHECK(fd < FD_MAX);
    known[fd] = true;
}

static void check_descriptor(int fd, void *user)
{
    bool *known = user;
    CHECK(fd < FD_MAX && (known[fd] || (fcntl(fd, F_GETFD) & FD_CLOEXEC)));
}

static void check_descriptor_is_known(int fd, void *user)
{
    bool *known = user;
    CHECK(fd < FD_MAX && known[fd]);
}

static void descriptors_are_closed_on_exec_and_by_free(void)
{
    bool known[FD_MAX] = {false};
    vigil_queue *queue;
    for_each_number("/proc/self/fd", note_descriptor, known);
    vigil_client *client = new_client();
    CHECK(vigil_queue_new(client, &queue) == VIGIL_OK);
    put(client, "k", "v");
    for_each_number("/proc/self/fd", check_descriptor, known);
    vigil_queue_free(queue);
    vigil_client_free(client);
    for_each_number("/proc/self/fd", check_descriptor_is_known, known);
}

const struct suite_test process_tests[] = {
    {"parent_goes_on_after_fork", parent_goes_on_after_fork},
    {"signals_do_not_disturb_calls", signals_do_not_disturb_calls},
    {"broken_pipes_do_not_end_the_program", broken_pipes_do_not_end_the_program},
    {"threads_of_the_library_take_no_signals", threads_of_the_library_take_no_signals},
    {"descriptors_are_closed_on_exec_and_by_free", descriptors_are_closed_on_exec_and_by_free},
    {NULL, NULL},
};
