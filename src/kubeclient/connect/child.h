/*
 * A program that is run for what it prints. It has no shell, nothing to read, no descriptors of
 * ours, no blocked or ignored signals, and a process group of its own.
 *
 *     running ──(it has ended)───────────────► ended ──► done
 *        └──(a limit)──► killed ──(the same)────▲
 *
 * It has ended when its process has: what other processes, which it may have left behind, print
 * later is not waited for. Only this process is waited for, by its own descriptor where the kernel
 * has one (pidfd), without a handler of SIGCHLD; the other children of the program that uses the
 * library are left to it. If that program ignores SIGCHLD or waits for all its children itself, how
 * the process ended is unknown.
 *
 * Owned by the caller that started it; its loop's thread. A simulated loop has a simulated runner.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_CHILD_H
#define VIGIL_KUBECLIENT_CONNECT_CHILD_H

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"

struct loop;

enum {
    CHILD_OUTPUT_BYTES_MAX = 1 << 20,
    CHILD_ERRORS_BYTES_MAX = 1024, /* kept of its standard error; the rest is read and dropped */
};
#define CHILD_TIME_NS_MAX (300 * NS_PER_S)

enum child_end {
    CHILD_EXITED,   /* the number is its exit status */
    CHILD_SIGNALED, /* the number is a signal */
    CHILD_VANISHED, /* it has ended, but how is unknown */
    CHILD_TOO_MUCH, /* it was killed: it printed more than output_bytes_max */
    CHILD_TOO_LONG, /* it was killed: it was not done after time_ns_max */
    CHILD_BROKEN,   /* it was killed: memory was missing, or a descriptor could not be read */
};

/* Borrowed until done returns. */
struct child_result {
    enum child_end end;
    int number;
    struct slice output, errors; /* its standard output and the beginning of its standard error */
};

struct child_params {
    const char *path;        /* path of the program; PATH is not searched */
    const char *const *args; /* begins with its name, ends with NULL */
    const char *const *env;  /* "NAME=value", ends with NULL */
    size_t output_bytes_max;
    int64_t time_ns_max;
    bool polls; /* the process is looked at from time to time, as without a pidfd; for tests */
    /* Called once, not from within the start; the child may be freed inside. */
    void (*done)(void *ctx, const struct child_result *result);
    void *ctx;
};

struct child;

struct child_ops {
    void (*free)(struct child *child);
};

struct child {
    const struct child_ops *ops;
};

/* What starts programs: the operating system, or a test. */
struct child_runner {
    /* Texts are borrowed until it returns. ST_NOT_FOUND, ST_IO, ST_LIMIT, ST_NOMEM; the error is
     * the reason only: "Permission denied". */
    enum status (*start)(const struct child_runner *runner, struct loop *loop,
                         const struct child_params *params, struct child **ret_child,
                         struct error *error);
};

/* The operating system's. Never freed. */
const struct child_runner *child_runner_posix(void);

MUST_CHECK
static inline enum status child_start(const struct child_runner *runner, struct loop *loop,
                                      const struct child_params *params, struct child **ret_child,
                                      struct error *error)
{
    return runner->start(runner, loop, params, ret_child, error);
}

/* Kills it if it has not ended: it and what it started are gone shortly afterwards. done is not
 * called any more. */
static inline void child_free(struct child *child)
{
    if (child)
        child->ops->free(child);
}
DEFINE_CLEANUP(struct child *, child_free)

#endif
