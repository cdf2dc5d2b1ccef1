/*
 * Label selectors: "app=web,tier in (a,b),!old". Parsed once, then matched against the JSON of an
 * object's labels. Errors have the texts of Kubernetes.
 */
#ifndef VIGIL_KUBE_REQUEST_LABEL_SELECTOR_H
#define VIGIL_KUBE_REQUEST_LABEL_SELECTOR_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "base/slice.h"

struct label_selector;

enum {
    LABEL_SELECTOR_BYTES_MAX = 64 * 1024,
    LABEL_REQUIREMENTS_MAX = 256,
    LABEL_VALUES_MAX = 4096,
};

/*
 * The selector is allocated in the arena. An empty text matches everything. ST_INVALID with the
 * text of Kubernetes, ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status label_selector_parse(struct arena *arena, struct slice text,
                                 const struct label_selector **ret_selector, struct error *error);

/* One of the conditions of a selector, as in metav1.LabelSelectorRequirement. */
struct label_requirement {
    struct slice key;
    const char *op; /* "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt" */
    const struct slice *values;
    size_t value_count;
};
/* All of them, in the order of their keys, with sorted values, in the arena. ST_NOMEM. */
MUST_CHECK
enum status label_selector_requirements(const struct label_selector *selector, struct arena *arena,
                                        const struct label_requirement **ret_requirements,
                                        size_t *ret_count);

bool label_selector_is_empty(const struct label_selector *selector);

/* labels: the JSON object including its braces, or empty. */
bool label_selector_matches(const struct label_selector *selector, struct slice labels);

#endif
