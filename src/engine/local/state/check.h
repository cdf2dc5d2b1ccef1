/*
 * The periodic check of the store: everything that is stored is read and compared
 * (store/upkeep/check.h), so that damage is found before a client needs the damaged data. It runs
 * on the keeper's thread; bytes per turn and per second are limited, so that clients do not notice.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_CHECK_H
#define VIGIL_ENGINE_LOCAL_STATE_CHECK_H

#include "base/error.h"
#include "engine/local/state/report.h"
#include "store/upkeep/check.h"

#include <stdatomic.h>

struct upkeep;
struct metric_block;
struct metric_page;

/* The last complete pass. Any thread may read it. */
struct local_check_result {
    _Atomic int64_t ended_unix_s; /* 0: no pass has ended */
    _Atomic int64_t took_ns;
    _Atomic uint64_t bad; /* damaged records and versions */
};

struct local_check_options {
    struct upkeep *upkeep; /* all borrowed */
    struct metric_block *counts;
    const struct local_report *report;
    struct local_check_result *result;
    int64_t interval_ns;
};

struct local_check {
    struct local_check_options options;
    struct store_check *pass; /* owned; NULL between passes */
    struct store_check_counts counted;
    unsigned warnings; /* about this pass */
    int64_t begun_ns;
    int64_t next_ns; /* when the next step is due */
};

void local_check_init(struct local_check *check, const struct local_check_options *options,
                      int64_t now_ns);
void local_check_fini(struct local_check *check);

/* Makes a step if one is due. */
void local_check_turn(struct local_check *check, int64_t now_ns);

/* Checks everything, while the store is opened. ST_DAMAGED: the error says what and where. */
MUST_CHECK
enum status local_check_first(const struct store_view *view, const struct log *log,
                              struct error *ret_error);

void local_check_metrics_write(const struct local_check_result *result, struct metric_page *page);

#endif
