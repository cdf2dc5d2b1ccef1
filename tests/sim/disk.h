/*
 * The disk of a simulated machine: tests/doubles/simulated/file_sim.h for the log, backend_memory.h
 * for the checkpoint. Every call of the store on it is an action: others run in between, time
 * passes, and the machine may crash there.
 */
#ifndef VIGIL_TESTS_SIM_DISK_H
#define VIGIL_TESTS_SIM_DISK_H

#include "simulated/file_sim.h"

struct disk;

struct disk_options {
    const char *dir; /* everything on it is below */
    uint64_t seed;
    bool slow; /* some syncs take a second */
    bool misdirects;
    bool is_front; /* disk of the server in front, for the coverage */
    /* Called at the planned action, which then fails as everything after it. */
    void (*crash)(void *ctx);
    void *ctx;
};

struct disk *disk_new(const struct disk_options *options);
void disk_free(struct disk *disk);
struct fs *disk_fs(struct disk *disk);
/* The one with this path; NULL: none. */
struct disk *disk_at(const char *path);

/* Calls crash at the nth action from now; 0: not. */
void disk_plan_crash(struct disk *disk, uint64_t n);
/* The process that used it has ended: everything fails until disk_start. */
void disk_stop(struct disk *disk);
void disk_start(struct disk *disk);
/* Power fails. After disk_stop. */
void disk_cut_power(struct disk *disk);

/* The nth call from now on fails once. */
void disk_plan_error(struct disk *disk, uint64_t n);
void disk_set_full(struct disk *disk, bool full);
/* A bit changes. The server does not run. */
void disk_rot(struct disk *disk);
bool disk_is_rotten(const struct disk *disk); /* the file with that bit still exists */
void disk_heal(struct disk *disk);            /* no error is planned, and there is room */
/* Removes a directory, with the checkpoint. */
void disk_remove_tree(struct disk *disk, const char *path);

#endif
