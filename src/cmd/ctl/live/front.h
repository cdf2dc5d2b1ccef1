/*
 * What the metrics of a Vigil in front of a cluster say of the cluster: how well the mirror follows
 * it, and which member is at each endpoint. Shown by `vigil doctor` and `vigil top`.
 */
#ifndef VIGIL_CMD_CTL_LIVE_FRONT_H
#define VIGIL_CMD_CTL_LIVE_FRONT_H

#include "cmd/ctl/live/metrics.h"

enum { FRONT_UPSTREAMS_MAX = 16, FRONT_TEXT_BYTES = 64 };

/* The texts can be shown: other characters than visible ASCII are replaced. */
struct front_upstream {
    char endpoint[FRONT_TEXT_BYTES];
    char role[FRONT_TEXT_BYTES], version[FRONT_TEXT_BYTES], member[FRONT_TEXT_BYTES]; /* or "" */
    bool answers, is_followed;
};

struct front {
    bool is_front; /* false: the server has its own data, and nothing else is set */
    bool is_followed, is_synced;
    double revision, lag, silent_s; /* lag is -1 while it is not known */
    struct front_upstream upstreams[FRONT_UPSTREAMS_MAX];
    size_t count;
};

void front_read(struct front *front, const struct metrics *metrics);

/* Copies what a server has sent, so that it can be shown. */
void front_copy_visible(char *to, size_t room, struct slice text);

#endif
