/*
 * The list of errors in an object, each with its field, which becomes the causes of a Status. It is
 * allocated in an arena, which must outlive the status that is failed with it.
 */
#ifndef VIGIL_KUBE_TYPES_FIELD_ERRORS_H
#define VIGIL_KUBE_TYPES_FIELD_ERRORS_H

#include "base/memory/arena.h"
#include "kube/types/status.h"

/* Further errors are dropped. */
enum { KUBE_FIELD_ERRORS_MAX = 64 };

struct kube_field_errors {
    struct arena *arena;
    struct kube_field_error *first, *last;
    size_t count;
    bool no_memory; /* some errors could not be stored */
};

/* reason: "FieldValueInvalid"; the message begins with "Invalid value: ". */
void kube_field_errors_add(struct kube_field_errors *errors, const char *reason, struct slice field,
                           const char *format, ...) PRINTF_LIKE(4, 5);

/* Moves errors of the same arena behind these. */
void kube_field_errors_join(struct kube_field_errors *errors,
                            const struct kube_field_errors *others);

/*
 * Fails with `Widget.example.com "a" is invalid: …` and a cause for each error, after the causes
 * that the status has already. Returns false.
 */
bool kube_fail_field_errors(struct kube_status *status, const struct kube_field_errors *errors,
                            struct slice group, struct slice kind, struct slice name);

#endif
