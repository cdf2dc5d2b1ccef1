/*
 * What a check of the Pod Security Standards looks at, and the text that says what it has found.
 *
 * A check collects names and values first, because a text begins with how many there are. All
 * memory is that of the arena; what cannot be stored is noted in no_memory, which fails the review.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_CHECKED_H
#define VIGIL_KUBE_POLICY_SECURITY_CHECKED_H

#include "base/buf.h"
#include "codec/json/tree.h"

struct pod_checked {
    const struct json_node *metadata, *spec;
    int64_t minor; /* version of the standard, at most POD_SECURITY_NEWEST_MINOR */
    struct arena *arena;
    const char *reason;
    struct buf detail; /* empty: there are none */
    bool no_memory;
};

/* Returns false: the check has found something. */
static inline bool pod_check_fail(struct pod_checked *checked, const char *reason)
{
    checked->reason = reason;
    return false;
}

/* -- Reading -- */

/* Empty if there is none. */
struct slice pod_text_of(struct pod_checked *checked, const struct json_node *node);
/* The member "name" of a container, volume or setting. */
struct slice pod_name_of(struct pod_checked *checked, const struct json_node *item);

/* Walks through all containers, in the order in which texts name them. */
struct pod_containers {
    const struct json_node *spec, *now; /* now: NULL behind the last one */
    size_t list;                        /* the next of the lists of containers */
};
struct pod_containers pod_containers_of(const struct pod_checked *checked);
void pod_containers_next(struct pod_containers *containers);

/* -- Collecting -- */

struct pod_words {
    struct slice *items;
    size_t count, room;
};
void pod_words_add(struct pod_checked *checked, struct pod_words *words, struct slice text);
/* Words that are shown as a set: in order, each only once. */
void pod_words_sort(struct pod_words *words);

/* -- The detail -- */

void pod_put(struct pod_checked *checked, struct slice text);
void pod_put_text(struct pod_checked *checked, const char *text);
void pod_put_joined(struct pod_checked *checked, const struct pod_words *words,
                    const char *between);
/* "a", "b" */
void pod_put_quoted(struct pod_checked *checked, const struct pod_words *words);
/* containers "a", "b" */
void pod_put_containers(struct pod_checked *checked, const struct pod_words *names);
const char *pod_plural(size_t count, const char *one, const char *more);

#endif
