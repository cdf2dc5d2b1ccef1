/*
 * How the local engine reports to the operator: warnings, fatal errors, and stored bytes that
 * differ from what was written (a failing disk, another program that writes to the files). Any
 * thread.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_REPORT_H
#define VIGIL_ENGINE_LOCAL_STATE_REPORT_H

#include "base/slice.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

struct engine_op;
struct log;

struct local_report {
    void (*on_fatal)(void *ctx, const char *text); /* may be NULL, as the next */
    void (*on_warning)(void *ctx, const char *text);
    void (*on_failure)(void *ctx, const char *text); /* NULL: a failure is fatal */
    _Atomic bool failed;                             /* the engine has stopped */
    void *ctx;
    const struct log *log;             /* the store's; set when it is open */
    _Atomic int64_t damage_logged_ns;  /* time of the last warning about damage; 0: none */
    _Atomic uint64_t damaged_requests; /* requests and watches that failed because of damage */
};

/* Reports why the engine cannot continue, and does not return. */
_Noreturn void local_fatal(const struct local_report *report, const char *what, enum status status);
/* The same, unless there is on_failure: then the caller stops, and so do the other threads. */
void local_fail(struct local_report *report, const char *what, enum status status);
static inline bool local_has_failed(const struct local_report *report)
{
    return atomic_load_explicit(&report->failed, memory_order_acquire);
}

/* detail may be empty. */
void local_warn(const struct local_report *report, const char *what, enum status status,
                const char *detail);

enum { LOCAL_DAMAGE_TEXT_BYTES = 900 };
/* Where the damage is, and how to repair it. The key may be empty. */
void local_damage_text(char text[static LOCAL_DAMAGE_TEXT_BYTES], uint64_t segment_id,
                       uint64_t offset, struct slice key);

/*
 * The operation fails with ST_DAMAGED because of damage that the calling thread has just met: its
 * error text names key, revision and place, and says what to do.
 */
void local_describe_damage(struct engine_op *op);

/*
 * Counts a request or a watch that fails with ST_DAMAGED, and logs it, at most once a second, with
 * the text of the operation if it was described. op may be NULL. Returns the status that a client
 * gets: etcd's error for a corrupt store.
 */
enum status local_report_damage(struct local_report *report, const struct engine_op *op);

#endif
