/*
 * The model of etcd: the history of all changes, in the order of their revisions, and what follows
 * from it. The auditor (watchers.c) fills it from a watch of all keys; everything that clients were
 * answered is compared with it.
 *
 * A violation ends the process with status VIOLATION.
 */
#ifndef VIGIL_TESTS_SIM_HISTORY_H
#define VIGIL_TESTS_SIM_HISTORY_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { VIOLATION = 3, KEY_BYTES = 96, VALUE_BYTES = 32 };

/* Prints what is wrong, and ends the process. */
__attribute__((format(printf, 1, 2))) _Noreturn void violation(const char *format, ...);

/* A version of a key. */
struct version {
    char key[KEY_BYTES], value[VALUE_BYTES];
    char group; /* the label "group" of a Kubernetes object, one character; 0: none */
    int64_t revision, created, number; /* number is etcd's version; 0: deleted */
    int64_t lease;
    int64_t seen_ns; /* when the auditor received it */
};

/* A long value is shortened to its beginning and a checksum. */
void version_set_key(struct version *version, const void *bytes, size_t len);
void version_set_value(struct version *version, const void *bytes, size_t len);

void history_begin(void);
void history_end(void);

/* The next change: a deletion has number 0. Completes created and number, and compares them with
 * those given, unless they are 0. */
void history_add(const struct version *change);
/* Everything up to here is known. */
int64_t history_revision(void);

size_t history_count(void);
const struct version *history_at(size_t i);

/* The version of a key at a revision; NULL: it does not exist then. */
const struct version *history_get(const char *key, int64_t revision);
/* Keys that exist in a range at a revision, in order; returns their number. An empty end: one key.
 */
enum { RANGE_MAX = 256 };
size_t history_range(const char *key, const char *end, int64_t revision,
                     const struct version *ret_versions[RANGE_MAX]);
bool range_has(const char *key, const char *end, const char *candidate);

#endif
