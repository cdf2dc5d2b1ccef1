#include "base/buf.h"
#include "io/loop.h"
#include "kubeclient/connect/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 16 * 1024,
    /* Bytes read from the standard error of a process that has ended. */
    ERRORS_DRAINED_BYTES = 64 * 1024,
    REAP_MS_MAX = 2000, /* how long freeing waits for a process that was killed */
};
#define KILLED_NS_MAX (10 * NS_PER_S) /* a process that does not end even then is given up */
#define LOOK_NS_MIN (1 * NS_PER_MS)
#define LOOK_NS_MAX (50 * NS_PER_MS)

enum child_state { CHILD_RUNNING, CHILD_KILLED, CHILD_ENDED };

/* A pipe from the process. */
struct child_pipe {
    struct io_watch watch; /* its handle is -1 when it is closed */
    struct buf bytes;
    size_t kept_max; /* bytes beyond that are dropped */
};

struct child_posix {
    struct child child;
    struct loop *loop; /* borrowed */
    struct child_params params;
    enum child_state state;
    struct child_result result; /* its end is set when the state is not running */
    struct child_pipe output, errors;
    struct io_watch exit; /* its handle is the process; -1: the process is looked at by timer */
    pid_t pid;            /* 0: not started, or waited for */
    struct timer limit;   /* the time limit, then that of being killed */
    struct timer look;    /* without a descriptor of the process */
    int64_t look_every_ns;
};

static const unsigned child_moves[] = {
    [CHILD_RUNNING] = 1u << CHILD_KILLED | 1u << CHILD_ENDED,
    [CHILD_KILLED] = 1u << CHILD_ENDED,
    [CHILD_ENDED] = 0,
};

static void close_handle(struct loop *loop, struct io_watch *watch)
{
    if (watch->handle < 0)
        return;
    loop_unwatch(loop, watch);
    close(watch->handle);
    watch->handle = -1;
}

/* -- The process -- */

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* Looks at exactly this process, or by its number on kernels that cannot do that. As waitid. */
static int look_at(const struct child_posix *c, siginfo_t *info, int flags)
{
    *info = (siginfo_t){0};
    if (c->exit.handle >= 0) {
        int found = waitid((idtype_t)P_PIDFD, (id_t)c->exit.handle, info, flags);
        if (found == 0 || errno != EINVAL)
            return found;
    }
    return waitid(P_PID, (id_t)c->pid, info, flags);
}

/* Whether it is a child of ours that was not waited for: only then its number is certainly its
 * own. */
static bool is_ours(const struct child_posix *c)
{
    siginfo_t info;
    return c->pid && look_at(c, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void note_end(struct child_posix *c, const siginfo_t *info)
{
    c->pid = 0;
    if (c->state != CHILD_RUNNING)
        return;
    c->result.end = info->si_pid == 0             ? CHILD_VANISHED
                    : info->si_code == CLD_EXITED ? CHILD_EXITED
                                                  : CHILD_SIGNALED;
    c->result.number = info->si_pid ? info->si_status : 0;
}

/* Waits for it if it has ended. False: it still runs. */
static bool reap(struct child_posix *c)
{
    siginfo_t info;
    int found = -1;
    if (!c->pid)
        return true;
    do
        found = look_at(c, &info, WEXITED | WNOHANG);
    while (found < 0 && errno == EINTR);
    if (found == 0 && info.si_pid == 0)
        return false;
    note_end(c, &info);
    return true;
}

/* -- The end -- */

static void release(struct child_posix *c)
{
    close_handle(c->loop, &c->output.watch);
    close_handle(c->loop, &c->errors.watch);
    close_handle(c->loop, &c->exit);
    loop_timer_cancel(c->loop, &c->limit);
    loop_timer_cancel(c->loop, &c->look);
}

static void kill_child(struct child_posix *c, enum child_end end, int number)
{
    if (c->state != CHILD_RUNNING)
        return;
    STATE_MOVE(c->state, child_moves, CHILD_KILLED);
    c->result.end = end;
    c->result.number = number;
    close_handle(c->loop, &c->output.watch);
    close_handle(c->loop, &c->errors.watch);
    if (is_ours(c))
        kill(-c->pid, SIGKILL);
    loop_timer_set(c->loop, &c->limit, loop_now_ns(c->loop) + KILLED_NS_MAX);
}

/* -- Its output -- */

/* Reads once and returns what read returned; beyond kept_max bytes are dropped. -1 with ENOMEM:
 * memory was missing. */
static ssize_t read_piece(struct child_pipe *pipe)
{
    uint8_t piece[PIECE_BYTES];
    ssize_t n;
    do
        n = read(pipe->watch.handle, piece, sizeof(piece));
    while (n < 0 && errno == EINTR);
    size_t kept = n > 0 ? size_min((size_t)n, pipe->kept_max - pipe->bytes.len) : 0;
    if (kept && buf_append(&pipe->bytes, slice_of(piece, kept)) != ST_OK) {
        errno = ENOMEM;
        return -1;
    }
    return n;
}

/* False: there is nothing more at the moment. */
static bool read_output(struct child_posix *c)
{
    if (c->output.watch.handle < 0)
        return false;
    ssize_t n = read_piece(&c->output);
    if (n < 0 && errno != EAGAIN)
        kill_child(c, CHILD_BROKEN, errno);
    else if (n == 0)
        close_handle(c->loop, &c->output.watch);
    else if (c->output.bytes.len > c->params.output_bytes_max)
        kill_child(c, CHILD_TOO_MUCH, 0);
    return n > 0 && c->state == CHILD_RUNNING;
}

/* The same. Errors here only make the text of an error shorter. */
static bool read_errors(struct child_posix *c)
{
    if (c->errors.watch.handle < 0)
        return false;
    ssize_t n = read_piece(&c->errors);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        close_handle(c->loop, &c->errors.watch);
    return n > 0;
}

static void on_output(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    read_output(CONTAINER_OF(watch, struct child_posix, output.watch));
}

static void on_errors(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    read_errors(CONTAINER_OF(watch, struct child_posix, errors.watch));
}

/* Everything that the process itself has printed is in the pipes. */
static void drain(struct child_posix *c)
{
    while (read_output(c))
        ;
    for (int i = 0; i < ERRORS_DRAINED_BYTES / PIECE_BYTES && read_errors(c); i++)
        ;
}

static void finish(struct child_posix *c)
{
    if (c->state == CHILD_RUNNING)
        drain(c); /* which may find that it is too much */
    STATE_MOVE(c->state, child_moves, CHILD_ENDED);
    release(c);
    c->result.output = buf_slice(&c->output.bytes);
    c->result.errors = buf_slice(&c->errors.bytes);
    c->params.done(c->params.ctx, &c->result);
}

/* -- Events -- */

static void on_exit_ready(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct child_posix *c = CONTAINER_OF(watch, struct child_posix, exit);
    if (reap(c))
        finish(c);
}

static void on_look(struct timer *timer)
{
    struct child_posix *c = CONTAINER_OF(timer, struct child_posix, look);
    if (reap(c)) {
        finish(c);
        return;
    }
    c->look_every_ns *= c->look_every_ns < LOOK_NS_MAX ? 2 : 1;
    loop_timer_set(c->loop, timer, loop_now_ns(c->loop) + c->look_every_ns);
}

static void on_limit(struct timer *timer)
{
    struct child_posix *c = CONTAINER_OF(timer, struct child_posix, limit);
    if (c->state == CHILD_RUNNING)
        kill_child(c, CHILD_TOO_LONG, 0);
    else
        finish(c);
}

/* -- Starting -- */

/* The end for the process is not one of its standard descriptors, which are replaced there. */
static int make_pipe(struct child_pipe *pipe, int *ret_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    pipe->watch.handle = ends[0];
    *ret_end = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = *ret_end < 0 ? errno : 0;
    close(ends[1]);
    if (!error && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        error = errno;
    return error;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    /* The process begins like one of a shell, although the thread that starts it blocks signals. It
     * leads a group of its own, so that everything that it starts can be ended with it. */
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error)
        error = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return error;
}

static int spawn(struct child_posix *c, const int ends[2])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&files, ends[0], STDOUT_FILENO);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
        /* Closes the descriptors that the program has not marked as closed on exec. */
        if (!error)
            error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
        if (!error)
            error = set_attributes(&attributes);
        if (!error)
            error = posix_spawn(&c->pid, c->params.path, &files, &attributes,
                                (char *const *)(uintptr_t)c->params.args,
                                (char *const *)(uintptr_t)c->params.env);
        if (error)
            c->pid = 0;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int start_process(struct child_posix *c)
{
    int ends[2] = {-1, -1};
    int error = make_pipe(&c->output, &ends[0]);
    if (!error)
        error = make_pipe(&c->errors, &ends[1]);
    if (!error)
        error = spawn(c, ends);
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return error;
}

static int pidfd_of(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0); /* closed on exec */
#else
    (void)pid;
    return -1;
#endif
}

/* Without a descriptor of the process a timer does the same. */
static void watch_exit(struct child_posix *c)
{
    c->exit.handle = c->params.polls ? -1 : pidfd_of(c->pid);
    if (!is_ours(c)) {
        /* The program has already waited for it; the number may belong to another process now. */
        close_handle(c->loop, &c->exit);
        note_end(c, &(siginfo_t){0});
    }
    if (c->exit.handle >= 0 && loop_watch(c->loop, &c->exit, IO_READ) == ST_OK)
        return;
    close_handle(c->loop, &c->exit);
    loop_timer_set(c->loop, &c->look, loop_now_ns(c->loop) + c->look_every_ns);
}

static enum status fail(enum status status, struct error *error)
{
    return error_set(error, status, "%s",
                     status == ST_NOMEM ? "out of memory" : "the loop cannot watch its output");
}

/* There may be too many processes (EAGAIN) or descriptors. */
static enum status status_of(int reason)
{
    bool too_many = reason == EAGAIN || reason == EMFILE || reason == ENFILE;
    return too_many ? ST_LIMIT : status_from_errno(reason);
}

static enum status begin(struct child_posix *c, struct error *error)
{
    if (buf_reserve(&c->errors.bytes, c->errors.kept_max) != ST_OK)
        return fail(ST_NOMEM, error);
    int reason = start_process(c);
    if (reason)
        return error_set(error, status_of(reason), "%s", strerror(reason));
    watch_exit(c);
    enum status status = loop_watch(c->loop, &c->output.watch, IO_READ);
    if (status == ST_OK)
        status = loop_watch(c->loop, &c->errors.watch, IO_READ);
    if (status != ST_OK)
        return fail(status, error);
    loop_timer_set(c->loop, &c->limit, clock_add(loop_now_ns(c->loop), c->params.time_ns_max));
    return ST_OK;
}

static void free_posix(struct child *child)
{
    struct child_posix *c = CONTAINER_OF(child, struct child_posix, child);
    if (c->state != CHILD_ENDED) {
        if (is_ours(c))
            kill(-c->pid, SIGKILL);
        /* A process that was killed ends at once, unless the kernel is stuck in it. */
        for (int ms = 0; !reap(c) && ms < REAP_MS_MAX; ms++) {
            struct pollfd wait = {.fd = c->exit.handle, .events = POLLIN};
            poll(&wait, c->exit.handle >= 0, 1);
        }
        release(c);
    }
    buf_fini(&c->output.bytes);
    buf_fini(&c->errors.bytes);
    free(c);
}

static enum status start_posix(const struct child_runner *runner, struct loop *loop,
                               const struct child_params *params, struct child **ret_child,
                               struct error *error)
{
    static const struct child_ops ops = {.free = free_posix};
    (void)runner;
    struct child_posix *c = calloc(1, sizeof(*c));
    if (!c)
        return fail(ST_NOMEM, error);
    *c = (struct child_posix){
        .child.ops = &ops,
        .loop = loop,
        .params = *params,
        .output = {.watch = {.handle = -1, .fn = on_output},
                   .kept_max = params->output_bytes_max + 1},
        .errors = {.watch = {.handle = -1, .fn = on_errors}, .kept_max = CHILD_ERRORS_BYTES_MAX},
        .exit = {.handle = -1, .fn = on_exit_ready},
        .limit.fn = on_limit,
        .look.fn = on_look,
        .look_every_ns = LOOK_NS_MIN,
    };
    enum status status = begin(c, error);
    if (status == ST_OK)
        *ret_child = &c->child;
    else
        free_posix(&c->child);
    return status;
}

const struct child_runner *child_runner_posix(void)
{
    static const struct child_runner runner = {.start = start_posix};
    return &runner;
}
