/* When a log file is closed and a new one begins. */
#ifndef VIGIL_BASE_LOG_ROTATION_H
#define VIGIL_BASE_LOG_ROTATION_H

#include <stdbool.h>
#include <stdint.h>

struct log_rotation {
    int64_t file_bytes_max; /* 0: never */
    unsigned backups_max;   /* 0: all */
    unsigned age_days_max;  /* 0: any age */
    bool local_time;        /* in the names of old files */
};

#endif
