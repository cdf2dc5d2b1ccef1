/*
 * All that is wrong with an object, each at its place, as Kubernetes tells it in the causes of a
 * Status. Made in an arena, which outlives the status that is failed with them.
 */
#ifndef VIGIL_KUBE_STATUS_FIELD_ERRORS_H
#define VIGIL_KUBE_STATUS_FIELD_ERRORS_H

#include "base/memory/arena.h"
#include "kube/status/status.h"

/* More are not told. */
enum { KUBE_FIELD_ERRORS_MAX = 64 };

struct kube_field_errors {
    struct arena *arena;
    struct kube_field_error *first, *last;
    size_t count;
    bool no_memory; /* some could not be kept */
};

/* "FieldValueInvalid"; the message begins with "Invalid value: ". */
void kube_field_errors_add(struct kube_field_errors *errors, const char *reason, struct slice field,
                           const char *format, ...) PRINTF_LIKE(4, 5);

/* `Widget.example.com "a" is invalid: …` with a cause for each; those that the status has already
 * come first. Returns false. */
bool kube_fail_field_errors(struct kube_status *status, const struct kube_field_errors *errors,
                            struct slice group, struct slice kind, struct slice name);

#endif
