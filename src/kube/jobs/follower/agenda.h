/*
 * Objects for which a job has something to do, such as namespaces, each once and at its time, by
 * their names. Items stay until they are removed, with or without a time. One owner, one thread.
 * Aborts without memory.
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_AGENDA_H
#define VIGIL_KUBE_JOBS_FOLLOWER_AGENDA_H

#include "base/container/hash_map.h"
#include "base/container/heap.h"
#include "base/container/list.h"

/* Names of namespaces, and of other objects, are not longer; other keys may be. */
enum { KUBE_AGENDA_NAMESPACE_BYTES_MAX = 63, KUBE_AGENDA_NAME_BYTES_MAX = 253 };

struct kube_agenda_item {
    struct heap_link in_times; /* it has a time */
    struct list in_owner;      /* a list of the owner */
    int64_t not_before_ns;     /* earlier times become this one */
    unsigned failures;         /* failures of the owner */
    uint8_t name_len;
    char name[];
};

struct kube_agenda {
    struct hash_map items;
    struct heap times;
    uint8_t name_bytes_max;
};

/* name_bytes_max: one of those above. */
void kube_agenda_init(struct kube_agenda *agenda, uint8_t name_bytes_max, uint64_t seed);
/* Frees the items, too. Accepts a zeroed one. */
void kube_agenda_fini(struct kube_agenda *agenda);

struct slice kube_agenda_name(const struct kube_agenda_item *item);
/* NULL: it is not on the agenda. */
struct kube_agenda_item *kube_agenda_find(const struct kube_agenda *agenda, struct slice name);
/* The item of that name, which may be new. NULL: no such object has such a name. */
struct kube_agenda_item *kube_agenda_add(struct kube_agenda *agenda, struct slice name);
void kube_agenda_remove(struct kube_agenda *agenda, struct kube_agenda_item *item);

/* Whether it has a time already that kube_agenda_set would not change. */
bool kube_agenda_has(const struct kube_agenda *agenda, const struct kube_agenda_item *item,
                     int64_t at_ns);
/* Gives it a time; one that it has already stays if it is earlier. */
void kube_agenda_set(struct kube_agenda *agenda, struct kube_agenda_item *item, int64_t at_ns);
/* It has no time before this one; an earlier one that it has is moved. */
void kube_agenda_rest(struct kube_agenda *agenda, struct kube_agenda_item *item, int64_t until_ns);
/* An item whose time has come; it has none afterwards. NULL: there is none now. */
struct kube_agenda_item *kube_agenda_pop(struct kube_agenda *agenda, int64_t now_ns);
/* CLOCK_NEVER: no item has a time. */
int64_t kube_agenda_next_ns(const struct kube_agenda *agenda);

#endif
