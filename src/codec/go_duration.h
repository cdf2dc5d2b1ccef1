/* Durations as Go's time.ParseDuration reads them: "1h30m", "-1.5s", "0". */
#ifndef VIGIL_CODEC_GO_DURATION_H
#define VIGIL_CODEC_GO_DURATION_H

#include "base/slice.h"

enum { GO_DURATION_WHY_BYTES = 640 };

/* In nanoseconds. False: it is not a duration. */
MUST_CHECK
bool go_duration_read(struct slice text, int64_t *ret_ns);

/* False: `why` has the error in Go's words; of a long text only the beginning is repeated. */
bool go_duration_check(struct slice text, char why[GO_DURATION_WHY_BYTES]);

#endif
