/*
 * Pods for the tests of watches of objects, and a record of what a watch has delivered. The value
 * of a pod is "NAMESPACE/NAME@NODE#VERSION".
 */
#ifndef VIGIL_TESTS_CLIENT_OBJECTS_H
#define VIGIL_TESTS_CLIENT_OBJECTS_H

#include "suite.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { TEXT_BYTES = 64, NOTES_MAX = 4096, WAIT_S = 60 };

struct pod {
    char namespace[TEXT_BYTES], name[TEXT_BYTES], node[TEXT_BYTES];
    int version;
};

/* Selects pods; NULL: any. */
struct selector {
    const char *namespace, *name, *node, *not_node;
};

/* A copy of an event. */
struct note {
    int type;
    bool initial;
    char key[TEXT_BYTES], value[TEXT_BYTES];
    int64_t revision;
    int64_t batch_revision;
};

/* What a watch has delivered. */
struct record {
    vigil_client *client;
    vigil_object_watch *watch;
    struct selector selector;
    struct latch events, ended, callbacks;
    struct note notes[NOTES_MAX];
    size_t taken;             /* how many of the notes expect has taken */
    _Atomic long pause_after; /* answer a pause after this many events; 0: never */
    vigil_object_error error; /* if it has ended with one */
    bool refuse;              /* decode refuses everything */
    bool bookmarks;           /* note them, too */
};

enum {
    NONE = -1,
    ADDED = VIGIL_OBJECT_ADDED,
    MODIFIED = VIGIL_OBJECT_MODIFIED,
    DELETED = VIGIL_OBJECT_DELETED
};

/* Decoded pods that have not been released. */
extern _Atomic long live_pods;

int decode_pod(vigil_object *object, vigil_error *error, void *user);
void release_pod(void *decoded);

struct record *record_new(vigil_client *client);
/* Frees its watch, too. */
void record_free(struct record *record);
/* Note what a watch delivers; for vigil_object_watch_new with a record. */
int record_batch(vigil_object_watch *watch, vigil_object_batch *batch, void *user);
void record_start(struct record *record, const vigil_object_options *options);

/* latch_wait, which also drives a client without a thread. */
void objects_wait(vigil_client *client, struct latch *latch, long count);
/* Options of a watch that decodes pods. */
void objects_options(vigil_object_options *options, const char *key, bool prefix, int64_t revision);
/* A watch of pods; selector may be NULL. */
struct record *watch_pods(vigil_client *client, const char *key, bool prefix, int64_t revision,
                          const struct selector *selector);

/* Waits for the next event. */
const struct note *record_next(struct record *record);
/* The next event must be this one. */
void record_expect(struct record *record, int type, const char *key, const char *value,
                   int64_t revision);
/* The watch ends with this error, without another event. */
void record_expect_end(struct record *record, int status, const char *reason, const char *text);

int64_t current_revision(vigil_client *client);
/* Frees the client; every pod must have been released. */
void objects_finish(vigil_client *client);

#endif
