/*
 * Why the cluster cannot be followed at the moment: the last reason that the follower had. Written
 * by its thread, read by any.
 */
#ifndef VIGIL_MIRROR_LINK_FOLLOW_FAILURE_H
#define VIGIL_MIRROR_LINK_FOLLOW_FAILURE_H

#include "base/lock.h"

#include <stddef.h>

enum { FOLLOW_FAILURE_BYTES = 320 };

struct follow_failure {
    struct lock lock;
    char text[FOLLOW_FAILURE_BYTES]; /* "" if there is none; a longer reason is cut */
};

void follow_failure_init(struct follow_failure *failure);
void follow_failure_fini(struct follow_failure *failure); /* accepts a zeroed one */

void follow_failure_set(struct follow_failure *failure, const char *text);
void follow_failure_clear(struct follow_failure *failure);
void follow_failure_get(struct follow_failure *failure, char ret_text[FOLLOW_FAILURE_BYTES]);

#endif
