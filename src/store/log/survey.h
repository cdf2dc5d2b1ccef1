/*
 * Opens a log for reading without a checkpoint, in order to make a new one: finds all segments, and
 * which part of the log is complete. Changes nothing. For one thread.
 *
 * There may be a segment and the cleaner's copy of it. The older one is used: it has all that the
 * copy has.
 *
 * To salvage, everything is opened, however damaged it is: heads are made again, the records of a
 * segment may have holes, and locations are readable in every file.
 */
#ifndef VIGIL_STORE_LOG_SURVEY_H
#define VIGIL_STORE_LOG_SURVEY_H

#include "store/log/log.h"

struct log_survey {
    struct log *log; /* for readers; owned */
    uint64_t *ids;   /* ids of all segment files; owned */
    size_t id_count;
    uint64_t incomplete_to;   /* the cleaner may have dropped records up to this index */
    bool has_copies;          /* there are copies made by the cleaner */
    uint64_t copied_to;       /* the last index of those */
    unsigned heads_mended;    /* number of damaged heads that were made again in memory */
    unsigned unreadable;      /* number of files that could not be opened */
    uint64_t last_index;      /* no record after it continues the sequence */
    uint64_t last_seen;       /* the greatest index in a record or a seal */
    int64_t last_revision;    /* at that index, according to seals and records */
    uint64_t damaged_segment; /* 0: nothing required is damaged or missing */
    uint64_t damaged_offset;
};

MUST_CHECK
enum status log_survey_open(struct log_survey *survey, const struct log_options *options,
                            bool salvages, struct error *ret_error);
void log_survey_close(struct log_survey *survey); /* a zeroed one may be closed */
bool log_survey_has(const struct log_survey *survey, uint64_t segment_id);

#endif
