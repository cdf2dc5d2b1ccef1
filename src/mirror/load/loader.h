/*
 * Reads the state of the cluster at one revision and adds it to a load.
 *
 *     first page: the revision ──┬─► the rest as a stream, if the server has RangeStream
 *                                └─► page ──► the next one is requested ──► this one is compared …
 *
 * Each page costs the server a walk over all keys that follow, because it counts them, so pages are
 * large. What fails is requested again from where it ended, until the revision is compacted. Owned
 * by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_LOAD_LOADER_H
#define VIGIL_MIRROR_LOAD_LOADER_H

#include "mirror/load/load.h"
#include "mirror/load/ranges.h"

#include <vigil/client.h>

enum {
    LOADER_PAGE_BYTES = 12 << 20, /* about; two pages may be in memory */
    LOADER_PAGE_KEYS_FIRST = 1000,
    LOADER_PAGE_KEYS_MAX = 200 * 1000,
};

struct loader;

enum loader_outcome {
    LOADER_COMPLETE,
    LOADER_COMPACTED, /* the revision was compacted meanwhile */
    LOADER_OTHER,     /* the mirror is of another history */
    LOADER_FAILED,
};

struct loader_result {
    enum loader_outcome outcome;
    int64_t revision; /* revision of the state */
    char reason[VIGIL_ERROR_TEXT_BYTES];
};

struct loader_hooks {
    /* Called once unless the loader is freed. */
    void (*done)(void *ctx, const struct loader_result *result);
    /* After each page, and when one has failed and will be requested again. text: why, or NULL. */
    void (*progress)(void *ctx, const char *text);
};

struct loader_options {
    vigil_client *client;
    const struct ranges *ranges; /* borrowed */
    struct load *load;           /* borrowed */
    int64_t revision;            /* revision of the state; 0: the newest one */
    const struct loader_hooks *hooks;
    void *ctx;
};

/* Begins; no hook is called from within. Aborts without memory. */
struct loader *loader_new(const struct loader_options *options);
void loader_free(struct loader *loader); /* accepts NULL */

#endif
