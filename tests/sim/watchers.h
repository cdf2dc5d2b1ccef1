/*
 * Watches of the client library, and what they have delivered. The first one, the auditor, watches
 * all keys from the beginning and makes the history; the others are compared with it as it grows.
 */
#ifndef VIGIL_TESTS_SIM_WATCHERS_H
#define VIGIL_TESTS_SIM_WATCHERS_H

#include "history.h"

#include <vigil/vigil.h>

struct watcher;

void watchers_begin(void);
void watchers_end(void); /* also ends the watches; their clients still exist */

/* Watches all keys from the first revision on. */
void watchers_audit(vigil_client *client, bool asks_front);

struct watcher_options {
    const char *key, *end;
    int64_t revision; /* 0: from now on */
    bool previous;
    bool pauses; /* now and then */
    bool may_be_denied;
    bool asks_front; /* the server in front, or either */
};
void watcher_new(vigil_client *client, const struct watcher_options *options);
/* The ones that pause continue. From anywhere. */
void watchers_resume(void);

/* Every watch has delivered everything up to this revision. */
bool watchers_have_reached(int64_t revision);
/* Asks for progress, so that the above comes true without events. */
void watchers_ask(void);
/* Only after a bit has changed on the disk. */
bool watchers_audit_has_ended(void);
/* Compares what was delivered with what the history has by now. */
void watchers_check_known(void);
/* The history is complete; or partial, because the data is damaged. */
void watchers_check(bool partial);

/* A key-value of the library. */
struct version version_of(const vigil_kv *kv);

#endif
