/*
 * Changes of one object, one at a time. Each write that goes through makes the attempts of all
 * others fail, so what arrives while one is under way on this I/O thread waits in line, first come
 * first served, and costs nothing until its turn. Changes on other I/O threads and by clients of
 * the etcd API still compete, by the condition of their transactions.
 *
 *     enter ─┬─► first of its key: begins at once ──► leave ─► the next one begins, from the loop
 *            └─► waits ─────────────────────────────►─┘
 *
 * A turn is embedded in the call that owns it, which leaves when it answers and when it is freed,
 * whether it has begun or still waits. One line per face, on its thread.
 */
#ifndef VIGIL_KUBE_API_WRITE_QUEUE_H
#define VIGIL_KUBE_API_WRITE_QUEUE_H

#include "base/container/hash_map.h"
#include "io/loop.h"

/* Changes that may wait for one object on one I/O thread. */
enum { KUBE_LINE_WAITING_MAX = 1024 };

struct kube_line {
    struct loop *loop;
    struct hash_map heads; /* struct kube_turn: of each key the one that has begun or is ready to */
    struct list ready;     /* heads that begin with the next turn of the loop */
    struct deferred next;
};

struct kube_turn {
    struct slice key; /* borrowed; stays as it is while the turn is in line */
    void (*begin)(struct kube_turn *turn);

    /* Private; zeroed: it is in no line. */
    struct kube_line *line;
    bool heads;         /* it is the head of its key; else it waits behind that */
    struct list link;   /* in behind of the head, or in line->ready */
    struct list behind; /* of a head: those that wait for it, in order */
    size_t waiting;     /* of a head: how many they are */
};

void kube_line_init(struct kube_line *line, struct loop *loop, uint64_t seed);
/* Nobody may be in line. */
void kube_line_fini(struct kube_line *line);

enum kube_entry {
    KUBE_LINE_FIRST,  /* the caller begins */
    KUBE_LINE_WAITS,  /* `begin` is called when it is its turn */
    KUBE_LINE_REFUSED /* too many wait already */
};

/* Key and begin are set. Without memory for a line the caller begins: order is for speed alone. */
MUST_CHECK
enum kube_entry kube_line_enter(struct kube_line *line, struct kube_turn *turn);
/* May be called for a turn that is in no line. */
void kube_line_leave(struct kube_turn *turn);

/* For tests: every turn is where its state says. */
void kube_line_check(const struct kube_line *line);

#endif
