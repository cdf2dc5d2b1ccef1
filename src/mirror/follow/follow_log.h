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
struct trouble;

struct news {
    const struct cluster_options *cluster; /* has the functions that are called */
    struct trouble *trouble;               /* borrowed; for every thread */
    struct loop *loop;
    const struct channel *channel; /* knows why the cluster cannot be reached */
    int64_t next_ns;               /* before this time nothing more is reported */
    const char *load_why;          /* static; NULL: no state is being read */
    struct timer again;            /* set while the cluster does not answer */
    int64_t since_ns;              /* since when it does not */
};

void news_start(struct news *news, const struct cluster_options *cluster, struct trouble *trouble,
                struct loop *loop, const struct channel *channel);
void news_stop(struct news *news);

/* The cluster is expected to answer, or no more. While it does not, that is reported again and
 * again, with the reason. */
void news_expect_answer(struct news *news, bool expected);
void news_waiting(struct news *news, const char *reason);
/* A state begins to be read; why is static. */
void news_load(struct news *news, const char *why);
void news_loading(struct news *news, const struct load *load, bool complete);
/* followed: without its endpoint. */
void news_following(struct news *news, struct cluster_followed followed);

#endif
