/*
 * Opens a log for reading without a checkpoint, in order to make a new one: finds all segments, and
 * which part of the log is complete. Changes nothing. For one thread.
 *
 * A segment and the cleaner's copy of it may both be there. The older one is taken: it has all that
 * the copy has.
 */
#ifndef VIGIL_STORE_LOG_SURVEY_H
#define VIGIL_STORE_LOG_SURVEY_H

#include "store/log/log.h"

struct log_survey {
    struct log *log; /* for readers; owned */
    uint64_t *ids;   /* of all segment files; owned */
    size_t id_count;
    uint64_t incomplete_to;   /* of records up to this index the cleaner may have dropped some */
    bool has_copies;          /* the cleaner's */
    uint64_t last_index;      /* of the log: no record after it follows on the one before it */
    uint64_t last_seen;       /* of a record or a seal */
    int64_t last_revision;    /* at that, as far as seals and records tell */
    uint64_t damaged_segment; /* 0: nothing that should be there is damaged or missing */
    uint64_t damaged_offset;
};

MUST_CHECK
enum status log_survey_open(struct log_survey *survey, const struct log_options *options,
                            struct error *ret_error);
void log_survey_close(struct log_survey *survey); /* a zeroed one may be closed */
bool log_survey_has(const struct log_survey *survey, uint64_t segment_id);

#endif
