/*
 * What a watch has delivered, as a queue that a test reads like a Go channel: one delivery for each
 * event, and one for each batch without events. The callback runs on the client's thread, the
 * other functions on the test's.
 */
#ifndef VIGIL_TESTS_CLIENT_INBOX_H
#define VIGIL_TESTS_CLIENT_INBOX_H

#include "suite.h"

enum { INBOX_TEXT_BYTES = 32 };

struct delivery {
    int what; /* enum vigil_watch_what */
    /* What the batch says. */
    int64_t revision, header_revision, compact_revision;
    size_t event_count;
    vigil_error error;
    /* What the event says; texts are cut off. */
    int type;
    char key[INBOX_TEXT_BYTES], value[INBOX_TEXT_BYTES], prev_value[INBOX_TEXT_BYTES];
    size_t value_size, prev_size;
    bool has_prev;
    int64_t create_revision, mod_revision, version;

    struct delivery *next;
};

struct inbox {
    vigil_watch *watch;
    struct latch count; /* number of all deliveries so far */
    long taken;
    struct delivery *first, **last; /* protected by the latch's mutex */
    _Atomic bool pause;             /* the callback answers with a pause */
};

vigil_watch_options watch_options(const char *key, int64_t revision);
vigil_watch_options prefix_options(const char *prefix, int64_t revision);

/* Begins a watch; inbox is initialised. */
void inbox_begin(struct inbox *inbox, vigil_client *client, const vigil_watch_options *options);
/* The same, and waits until the server has the watch. Returns the revision of that moment. */
int64_t inbox_open(struct inbox *inbox, vigil_client *client, vigil_watch_options options);
/* The same for a key, from now on. */
int64_t inbox_open_key(struct inbox *inbox, vigil_client *client, const char *key);

/* Waits for the next delivery. */
struct delivery inbox_take(struct inbox *inbox);
/* The next delivery is an event, or an event with this value, or the end with this code. */
struct delivery inbox_take_event(struct inbox *inbox);
struct delivery inbox_take_value(struct inbox *inbox, const char *value);
struct delivery inbox_take_end(struct inbox *inbox, int code);
bool inbox_is_empty(struct inbox *inbox);

/* Ends the watch if it has not ended, and forgets what was not taken. */
void inbox_close(struct inbox *inbox);

#endif
