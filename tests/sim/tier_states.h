/*
 * What the watch tier has shown of the ConfigMaps: whole states (lists, the initial events of
 * watches) and single objects, compared with the history as soon as it has the revisions in
 * question.
 */
#ifndef VIGIL_TESTS_SIM_TIER_STATES_H
#define VIGIL_TESTS_SIM_TIER_STATES_H

#include "history.h"

#include <vigil/kube.h>

enum { TIER_ITEMS_MAX = 16 };

/* What a request selects. */
struct tier_scope {
    char only[KEY_BYTES]; /* this key; "": all */
    char group;           /* those with this label; 0: with any, or without */
};

/* A list, or an object that was read. */
struct tier_state {
    const char *what; /* constant */
    struct tier_scope scope;
    bool is_object;   /* one object was read, which does not tell the version of a list */
    int64_t revision; /* the state has exactly the objects of this revision */
    int64_t floor;    /* nothing that happened up to this revision is missing */
    unsigned count;
    struct {
        char key[KEY_BYTES];
        int64_t revision;
    } items[TIER_ITEMS_MAX];
};

void tier_states_begin(void);
void tier_state_add_item(struct tier_state *state, const vigil_kube_object *object);
/* It is complete. */
void tier_states_add(const struct tier_state *state);
void tier_states_check_known(void);
/* The history is complete. */
void tier_states_finish(void);

/* Every answer and event with this revision of an object has the same contents. */
void tier_states_show(const char *key, int64_t revision, const vigil_kube_object *object);
/* The number in a resourceVersion. */
int64_t tier_version_of(vigil_bytes version);
void tier_key_of(const vigil_kube_object *object, char ret_key[KEY_BYTES]);

/* Whether it selects that version; NULL: the object does not exist. */
bool tier_scope_has(const struct tier_scope *scope, const struct version *version);
/* The next change of what is selected after this revision, in the history: also one by which an
 * object comes to it or leaves it. NULL: there is none. */
const struct version *tier_states_next(const struct tier_scope *scope, int64_t after);

#endif
