/*
 * Why the cluster cannot be followed at the moment: the last reason that the follower had. Written
 * by its thread, read by any.
 */
#ifndef VIGIL_MIRROR_LINK_FOLLOW_FAILURE_H
#define VIGIL_MIRROR_LINK_FOLLOW_FAILURE_H

#include "base/lock.h"

#include <stddef.h>

enum { TROUBLE_BYTES = 320 };

struct trouble {
    struct lock lock;
    char text[TROUBLE_BYTES]; /* "" if there is none; a longer reason is cut */
};

void trouble_init(struct trouble *trouble);
void trouble_fini(struct trouble *trouble); /* accepts a zeroed one */

void trouble_set(struct trouble *trouble, const char *text);
void trouble_clear(struct trouble *trouble);
void trouble_get(struct trouble *trouble, char ret_text[TROUBLE_BYTES]);

#endif
