/*
 * The check of the store: now and then all that is stored is read and compared
 * (store/upkeep/check.h), so that damage is known before somebody asks for what it has hit. On the
 * keeper's thread, a bounded number of bytes a turn and a second, so that nobody notices.
 */
#ifndef VIGIL_ENGINE_LOCAL_CHECK_H
#define VIGIL_ENGINE_LOCAL_CHECK_H

#include "base/error.h"
#include "store/upkeep/check.h"

#include <stdatomic.h>

struct engine_local;
struct keeper;
struct metric_block;
struct metric_page;

struct local_check {
    struct keeper *keeper;       /* borrowed */
    struct metric_block *counts; /* borrowed */
    struct engine_local *engine; /* during a turn */
    struct store_check *pass;    /* owned; NULL between passes */
    struct store_check_counts counted;
    unsigned told; /* lines about this pass */
    int64_t interval_ns, begun_ns;
    int64_t next_ns; /* when the next turn is due */
    /* Of the last complete pass, for any thread: */
    _Atomic int64_t ended_unix_s; /* 0: there was none */
    _Atomic int64_t took_ns;
    _Atomic uint64_t bad;
};

void local_check_init(struct local_check *check, struct keeper *keeper, struct metric_block *counts,
                      int64_t interval_ns, int64_t now_ns);
void local_check_fini(struct local_check *check);

/* Goes on if it is time. */
void local_check_turn(struct local_check *check, struct engine_local *engine, int64_t now_ns);

/* All at once, before anybody uses the store. ST_DAMAGED: the error says what and where. */
MUST_CHECK
enum status local_check_first(const struct store_view *view, const struct log *log,
                              struct error *ret_error);

void local_check_metrics_write(const struct local_check *check, struct metric_page *page);

#endif
