/*
 * The disk of the simulated machine: io/file_sim.h for the log, backend_memory.h for the
 * checkpoint. Every call of the store on it is an action: others run in between, time passes, and
 * the machine may crash there.
 */
#ifndef VIGIL_TESTS_SIM_DISK_H
#define VIGIL_TESTS_SIM_DISK_H

#include "io/file_sim.h"

struct disk_options {
    uint64_t seed;
    bool slow; /* some syncs take a second */
    bool misdirects;
    /* Called at the planned action, which then fails as everything after it. */
    void (*crash)(void *ctx);
    void *ctx;
};

void disk_begin(const struct disk_options *options);
void disk_end(void);
struct fs *disk_fs(void);

uint64_t disk_actions(void);
/* Calls crash at the nth action from now; 0: not. */
void disk_plan_crash(uint64_t n);
/* The process that used it has ended: everything fails until disk_start. */
void disk_stop(void);
void disk_start(void);
/* Power fails. After disk_stop. */
void disk_cut_power(void);

/* The nth call from now on fails once. */
void disk_plan_error(uint64_t n);
void disk_set_full(bool full);
/* A bit changes. The server does not run. */
void disk_rot(void);
void disk_heal(void); /* no error is planned, and there is room */

#endif
