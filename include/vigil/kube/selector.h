/*
 * Selectors of labels and of fields, built from parts so that every value is escaped and checked:
 *
 *     vigil_selector *selector = vigil_selector_new();
 *     vigil_selector_equals(selector, "app", "web");
 *     vigil_selector_in(selector, "tier", tiers, 2);
 *     puts(vigil_selector_text(selector)); // app=web,tier in (a,b)
 *     vigil_selector_free(selector);
 *
 * A condition that cannot be expressed, for instance because a value is NULL or has forbidden
 * characters, or for which there is no memory, makes the whole selector invalid:
 * vigil_selector_text returns NULL, and vigil_selector_error says why. So only that needs a check.
 *
 * Threads: A selector may be used by one thread at a time.
 */
#ifndef VIGIL_KUBE_SELECTOR_H
#define VIGIL_KUBE_SELECTOR_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_selector vigil_selector;

/* A selector of labels without conditions, which selects everything. NULL: no memory. Every
 * function accepts NULL for the selector. */
VIGIL_API vigil_selector *vigil_selector_new(void);
/* A selector of fields, such as "metadata.name". It knows only vigil_selector_equals and
 * vigil_selector_not_equals. */
VIGIL_API vigil_selector *vigil_field_selector_new(void);
/* Frees the selector and its text. */
VIGIL_API void vigil_selector_free(vigil_selector *selector);

/* The label has this value. All conditions of a selector must hold. */
VIGIL_API void vigil_selector_equals(vigil_selector *selector, const char *key, const char *value);
/* The label has another value, or the object does not have it. */
VIGIL_API void vigil_selector_not_equals(vigil_selector *selector, const char *key,
                                         const char *value);
/* The label has one of the values. */
VIGIL_API void vigil_selector_in(vigil_selector *selector, const char *key,
                                 const char *const *values, size_t count);
/* The label has none of the values, or the object does not have it. */
VIGIL_API void vigil_selector_not_in(vigil_selector *selector, const char *key,
                                     const char *const *values, size_t count);
/* The object has the label, with any value. */
VIGIL_API void vigil_selector_exists(vigil_selector *selector, const char *key);
/* The object does not have the label. */
VIGIL_API void vigil_selector_absent(vigil_selector *selector, const char *key);

/* The text for requests; NULL if a condition was invalid. Valid until the next change. */
VIGIL_API const char *vigil_selector_text(const vigil_selector *selector);
/* What is wrong; "" if nothing is. */
VIGIL_API const char *vigil_selector_error(const vigil_selector *selector);

#ifdef __cplusplus
}
#endif

#endif
