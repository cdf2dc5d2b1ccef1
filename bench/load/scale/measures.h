/*
 * What the nodes of one thread have measured since the last sample: durations by kind, and counts.
 * The thread adds, the program's main thread takes a sample every second.
 */
#ifndef VIGIL_LOAD_SCALE_MEASURES_H
#define VIGIL_LOAD_SCALE_MEASURES_H

#include "base/lock.h"
#include "load/histogram.h"

/* Durations. */
enum scale_measure {
    /* Writes: from the start of the call to its answer. */
    SCALE_RENEW,
    SCALE_REGISTER, /* creations of nodes and Leases */
    SCALE_NODE_STATUS,
    SCALE_POD_CREATE,
    SCALE_POD_BIND,
    SCALE_POD_STATUS,
    SCALE_POD_DELETE,
    SCALE_SERVICE_UPDATE,
    SCALE_SLICE_UPDATE,
    SCALE_WRITES, /* their number */

    /* Reads of single objects, likewise. */
    SCALE_GET = SCALE_WRITES,
    /* From the start of a watch until the initial state is complete. */
    SCALE_LIST,
    /* Delays of watches: from the start of the write that makes a change to its event at a node. */
    SCALE_POD_DELAY,
    SCALE_SERVICE_DELAY,
    SCALE_SLICE_DELAY,
    SCALE_SLICE_LAST, /* to the last node that watches */
    /* From the creation of a pod until its status is ready. */
    SCALE_POD_READY,
    /* From the start of a node until it is registered and all of its watches are complete. */
    SCALE_NODE_SYNC,
    SCALE_NODE_RESYNC, /* after a restart */
    SCALE_MEASURES,
};

enum scale_count {
    SCALE_EVENTS,
    SCALE_BOOKMARKS,
    SCALE_WATCHES_TIMED_OUT, /* ended by the server when they were to end */
    SCALE_WATCHES_ENDED,     /* ended by the server otherwise, or not accepted */
    SCALE_RELISTS,           /* because the server has forgotten the version */
    SCALE_RENEWALS_DUE,
    SCALE_RENEWALS_MISSED, /* the one before was not answered yet */
    SCALE_CHANGES_MISSED,  /* the same for services and slices */
    SCALE_SLICES_UNSEEN,   /* changes that not every node had seen when the next one was made */
    SCALE_ERRORS,
    SCALE_COUNTS,
};

/* As in reports: "renew", "watches_ended". */
const char *scale_measure_name(enum scale_measure measure);
const char *scale_count_name(enum scale_count count);

/* The measured delays of watches, of which the verdict is. */
static inline bool scale_measure_is_delay(enum scale_measure measure)
{
    return measure >= SCALE_POD_DELAY && measure <= SCALE_SLICE_LAST;
}

struct scale_sample {
    struct bench_histogram durations[SCALE_MEASURES];
    uint64_t counts[SCALE_COUNTS];
};

/* Adds the second one to the first. */
void scale_sample_merge(struct scale_sample *into, const struct scale_sample *from);

enum { SCALE_ERROR_BYTES = 256 };

struct scale_measures {
    struct lock lock;           /* protects what follows */
    struct scale_sample sample; /* since the last one was taken */
    /* Texts; "" without one. */
    char first_error[SCALE_ERROR_BYTES], first_end[SCALE_ERROR_BYTES];
};

void scale_measures_init(struct scale_measures *measures);
void scale_measures_fini(struct scale_measures *measures);

void scale_measures_add(struct scale_measures *measures, enum scale_measure measure,
                        uint64_t duration_ns);
void scale_measures_count(struct scale_measures *measures, enum scale_count count);
/* Counts it and keeps the text of the first one. */
void scale_measures_error(struct scale_measures *measures, const char *what, const char *text);

/* The same for a watch that the server has ended, or has not accepted. */
void scale_measures_end(struct scale_measures *measures, const char *what, const char *text);
/* The texts of the first error and of the first such end. */
void scale_measures_texts(struct scale_measures *measures, char error[static SCALE_ERROR_BYTES],
                          char end[static SCALE_ERROR_BYTES]);

/* Adds what was measured to the sample, and begins again. */
void scale_measures_take(struct scale_measures *measures, struct scale_sample *into);

#endif
