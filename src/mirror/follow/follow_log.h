/*
 * What the follower reports for the log: why it waits for the cluster, and how far it has read the
 * cluster's state. A line every few seconds at most. On the follower's thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_FOLLOW_LOG_H
#define VIGIL_MIRROR_FOLLOW_FOLLOW_LOG_H

#include "io/timer.h"
#include "mirror/link/options.h"

struct channel;
struct load;
struct loop;
struct follow_failure;

struct follow_log {
    const struct mirror_options *cluster;  /* has the functions that are called */
    struct follow_failure *follow_failure; /* borrowed; for every thread */
    struct loop *loop;
    const struct channel *channel; /* knows why the cluster cannot be reached */
    int64_t next_ns;               /* before this time nothing more is reported */
    const char *load_why;          /* static; NULL: no state is being read */
    struct timer again;            /* set while the cluster does not answer */
    int64_t since_ns;              /* since when it does not */
};

void follow_log_start(struct follow_log *log, const struct mirror_options *cluster,
                      struct follow_failure *follow_failure, struct loop *loop,
                      const struct channel *channel);
void follow_log_stop(struct follow_log *log);

/* The cluster is expected to answer, or no more. While it does not, that is reported again and
 * again, with the reason. */
void follow_log_expect_answer(struct follow_log *log, bool expected);
void follow_log_waiting(struct follow_log *log, const char *reason);
/* A state begins to be read; why is static. */
void follow_log_load(struct follow_log *log, const char *why);
void follow_log_loading(struct follow_log *log, const struct load *load, bool complete);
/* followed: without its endpoint. */
void follow_log_following(struct follow_log *log, struct mirror_followed followed);

#endif
