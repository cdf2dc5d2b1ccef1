/*
 * Recognises an object that is sent back with one new text: the same members and values as before,
 * except for one string, and another one that is new. Compares the two texts without making
 * trees of them, which would take ten times as long as all of this.
 *
 *     before  {"metadata":{"name":"a"},"spec":{"holder":"n","renewTime":"2026-11-19T20:00:00Z"}}
 *     after   {"metadata":{"version":"7","name":"a"},"spec":{"renewTime":"…20:00:10Z","holder":"n"}}
 *
 * Members of the object and of these two members may have another order. Values must be written in
 * the same way: with other white space or escapes they count as different. Any thread.
 */
#ifndef VIGIL_CODEC_JSON_RESENT_H
#define VIGIL_CODEC_JSON_RESENT_H

#include "base/slice.h"

/* Objects with more members on one level are not recognised. */
enum { JSON_RESENT_MEMBERS_MAX = 24 };

/* A string within a member of the object. */
struct json_resent_path {
    const char *member, *name;
};

struct json_resent {
    struct json_resent_path changed; /* the string that may differ */
    struct json_resent_path added;   /* the string that only `after` has, within another member */
    /* Results: the texts without their quotes, which have no escapes. They point into the objects.
     */
    struct slice before, after, version;
};

/* False: it is something else, or not JSON at all. The results are then undefined. */
bool json_is_resent(struct json_resent *resent, struct slice before, struct slice after);

#endif
