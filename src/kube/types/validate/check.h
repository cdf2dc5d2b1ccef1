/*
 * The means of the rules: where a value is in the object, the errors of Kubernetes' field
 * package, and access to members. Paths are made on the stack and written only for an error, so a
 * valid object costs nothing but the lookups.
 *
 * What this folder exports begins with rule_, with bad_ if it adds an error, or with
 * kube_validate_ if it checks a kind.
 *
 *     bad_required(c, AT(AT_ITEM(AT(spec, "ports"), 0), "name"), NULL)   spec.ports[0].name: …
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_CHECK_H
#define VIGIL_KUBE_TYPES_VALIDATE_CHECK_H

#include "codec/json/tree.h"
#include "kube/types/field_errors.h"
#include "kube/types/object/name.h"

struct check {
    struct arena *arena;
    struct kube_field_errors *errors;
    bool all;              /* also checks what the old object has already: for tests */
    bool approves;         /* a write to /approval */
    bool unprivileged;     /* privileged containers are refused */
    bool any_label_values; /* values of selectors are not checked: the stored object has bad ones */
    struct kube_expression_scope *scope; /* NULL: expressions are not compiled */
};

/* -- Paths -- */
struct at {
    const struct at *up;
    const char *name;
    struct slice key;
    size_t index;
    enum { AT_IS_NAME, AT_IS_KEY, AT_IS_ITEM } is;
};

/* They live as long as the enclosing block. */
#define AT(parent, child) (&(const struct at){.up = (parent), .name = (child)})
#define AT_ITEM(parent, number) \
    (&(const struct at){.up = (parent), .index = (number), .is = AT_IS_ITEM})
#define AT_KEY(parent, text) (&(const struct at){.up = (parent), .key = (text), .is = AT_IS_KEY})

/* -- Errors; detail and why are Kubernetes' words -- */

void bad_required(struct check *c, const struct at *at, const char *detail); /* NULL: none */
void bad_forbidden(struct check *c, const struct at *at, const char *detail);
void bad_internal(struct check *c, const struct at *at, const char *detail);
void bad_text(struct check *c, const struct at *at, struct slice value, const char *why);
/* One error for each of the reasons, separated by "; ", or for all; `before` begins it. */
void bad_texts(struct check *c, const struct at *at, struct slice value, const char *before,
               char *whys);
void bad_joined(struct check *c, const struct at *at, struct slice value, const char *before,
                char *whys);
/* Without the value. */
void bad_omitted(struct check *c, const struct at *at, const char *why);
void bad_int(struct check *c, const struct at *at, int64_t value, const char *why);
/* Shows the value as JSON; NULL is null. */
void bad_node(struct check *c, const struct at *at, const struct json_node *value, const char *why);
/* The values are separated by commas: "TCP,UDP". */
void bad_choice(struct check *c, const struct at *at, struct slice value, const char *values);
void bad_choice_node(struct check *c, const struct at *at, const struct json_node *value,
                     const char *values);
void bad_choice_raw(struct check *c, const struct at *at, const char *json, const char *values);
void bad_not_found(struct check *c, const struct at *at, struct slice value, const char *detail);
void bad_repeat(struct check *c, const struct at *at, struct slice value);
void bad_repeat_why(struct check *c, const struct at *at, const char *json, const char *why);
void bad_repeat_int(struct check *c, const struct at *at, int64_t value);
/* The value is shown as it is given: {"Name":"a"}. */
void bad_repeat_raw(struct check *c, const struct at *at, const char *json);
void bad_raw(struct check *c, const struct at *at, const char *json, const char *why);
void bad_long(struct check *c, const struct at *at, int bytes_max);
void bad_many(struct check *c, const struct at *at, size_t count, int max);

/* -- Members; an absent one and null are NULL, "", 0 and false -- */

const struct json_node *rule_member(const struct json_node *object, const char *name);
/* A list or map, NULL if it is empty. */
const struct json_node *rule_filled(const struct json_node *object, const char *name);
static inline const struct json_node *rule_first(const struct json_node *list)
{
    return list ? list->first : NULL;
}
static inline size_t rule_count(const struct json_node *list)
{
    return list ? list->count : 0;
}
/* The decoded text of a string; that of a number as it stands. */
struct slice rule_text_of(struct check *c, const struct json_node *node);
struct slice rule_text(struct check *c, const struct json_node *object, const char *name);
/* Without white space at both ends. */
struct slice rule_trimmed(struct check *c, const struct json_node *object, const char *name);
struct slice rule_lower(struct check *c, struct slice text);
bool rule_list_has(struct check *c, const struct json_node *list, const char *text);
bool rule_text_is(const struct json_node *object, const char *name, const char *text);
/* The same with a default for an absent or empty text. */
bool rule_choice_is(const struct json_node *object, const char *name, const char *fallback,
                    const char *text);
int64_t rule_int_of(const struct json_node *node);
int64_t rule_int(const struct json_node *object, const char *name, int64_t fallback);
bool rule_truth(const struct json_node *object, const char *name);
/* An absent value, null, and an empty list or map are equal. */
bool rule_same_node(const struct json_node *a, const struct json_node *b);
bool rule_same_member(const struct json_node *a, const struct json_node *b, const char *name);
/* Whether the old object has the same value, which was valid when it was stored. was NULL: it has
 * none. */
bool rule_is_kept(const struct check *c, const struct json_node *is, const struct json_node *was);

/* -- Values -- */

typedef bool (*name_rule)(struct slice name, char why[NAME_ERROR_BYTES]);
/* Adds an error for each reason. */
bool rule_name(struct check *c, const struct at *at, struct slice value, name_rule rule);
void rule_choice(struct check *c, const struct at *at, struct slice value, const char *values);
bool rule_one_of(struct slice value, const char *values);
void rule_range(struct check *c, const struct at *at, int64_t value, int64_t low, int64_t high);
void rule_port(struct check *c, const struct at *at, int64_t port);
/* A number from 1 to 65535 or the name of a port. */
void rule_port_or_name(struct check *c, const struct at *at, const struct json_node *port);
void rule_not_negative(struct check *c, const struct at *at, int64_t value);
void rule_immutable(struct check *c, const struct at *at, const struct json_node *value,
                    const struct json_node *old);
/* The same of a text that has a default. */
void rule_immutable_choice(struct check *c, const struct at *at, const struct json_node *value,
                           const struct json_node *old, const char *fallback);
void rule_labels(struct check *c, const struct at *at, const struct json_node *labels);
void rule_selector(struct check *c, const struct at *at, const struct json_node *selector);
bool rule_selector_is_valid(struct check *c, const struct json_node *selector);
/* Values in expressions stay valid if the stored selector is invalid. */
void rule_kept_selector(struct check *c, const struct at *at, const struct json_node *selector,
                        const struct json_node *old);
/* An IP address is not of a special range. */
void rule_ip_range(struct check *c, const struct at *at, struct slice text);
/* The same, and it is valid. */
void rule_usable_ip(struct check *c, const struct at *at, struct slice text);

/* -- Texts seen before -- */

enum { SEEN_FEW = 8 };
/* Zeroed: empty. Borrows the keys. Any number of keys takes n log n time at most. */
struct seen {
    struct slice few[SEEN_FEW];
    size_t count;
    struct json_node *many;
};
/* Adds the key. False: it was there already. */
bool seen_add(struct check *c, struct seen *seen, struct slice key);
bool seen_has(const struct seen *seen, struct slice key);

#endif
