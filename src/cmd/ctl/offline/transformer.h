/*
 * The program of `etcdctl migrate --transformer`: it reads the nodes of a v2 store from its
 * standard input, JSON objects without anything between them, and writes keys of the v3 API to its
 * standard output (offline/kv_frames.h). It may read and write as it likes; both are served at the
 * same time.
 *
 * One owner, one thread. Ignores SIGPIPE from its start on, because the program may close its
 * input.
 */
#ifndef VIGIL_CMD_CTL_OFFLINE_TRANSFORMER_H
#define VIGIL_CMD_CTL_OFFLINE_TRANSFORMER_H

#include "cmd/ctl/offline/kv_frames.h"

#include <sys/types.h>

struct transformer {
    pid_t pid;    /* -1: it is not running */
    int from, to; /* its output and input; -1: closed */
};

/* The error is in Go's words. */
MUST_CHECK
enum status transformer_start(struct transformer *transformer, const char *program,
                              struct error *ret_error);
/* Gives it all nodes, collects what it answers and waits for its end. Its exit code is an error as
 * well: "exit status 3". */
MUST_CHECK
enum status transformer_run(struct transformer *transformer, struct slice nodes,
                            struct kv_frames *frames, struct error *ret_error);
/* Ends it if it is still running. Accepts one that was not started: pid is -1. */
void transformer_stop(struct transformer *transformer);

#endif
