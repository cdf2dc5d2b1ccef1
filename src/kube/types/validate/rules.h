/*
 * Simple rules as rows: which field, when it is checked, and what it must be. Rows are applied in
 * their order, so that errors come in the order of Kubernetes.
 *
 *     static const struct rule reference_rules[] = {
 *         {"apiGroup", IF_SET, NAME(subdomain_valid)},
 *         {"kind", NEEDED, NAME(segment_valid)},
 *         {"scope", IF_SOME, CHOICE("Cluster,Namespace")},
 *     };
 *     rule_rows(c, at, reference, reference_rules);
 *
 * What depends on several fields is a function, called by a row (PART) or between two tables.
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_RULES_H
#define VIGIL_KUBE_TYPES_VALIDATE_RULES_H

#include "kube/types/validate/check.h"

/* A value is nothing if it is Go's zero value: absent, "", 0, false, an empty list or map. */
enum rule_when {
    ALWAYS,      /* also if the field is absent */
    IF_SET,      /* it is there and not null */
    IF_SOME,     /* it is not nothing */
    NEEDED,      /* the same; nothing is an error ("Required value") */
    EACH,        /* each item of a list, at its index */
    EACH_NEEDED, /* the same; an empty list is an error */
    EACH_AT,     /* each item of a list, at the list itself */
};

struct rule {
    const char *field; /* NULL: the object itself */
    enum rule_when when;
    const char *shown; /* the name of the field in errors; NULL: its own */
    const char *why;   /* it is needed; NULL: no reason is given */

    /* Each of these is applied if it is given, in this order. */
    const char *forbidden; /* why the field must not be there */
    name_rule name;
    const char *choices; /* separated by commas */
    void (*text)(struct check *c, const struct at *at, struct slice text);
    void (*number)(struct check *c, const struct at *at, int64_t number);
    const char *outside; /* the error of a number that is not within these bounds */
    int64_t low, high;
    void (*part)(struct check *c, const struct at *at, const struct json_node *node);
    const struct rule *rows;
    size_t count;
    const char *unique; /* a member of each item, "" for the item itself: it is there once */
};

#define SHOWN(field) .shown = (field)
#define WHY(text) .why = (text)
#define FORBID(why_not) .forbidden = (why_not)
#define NAME(valid) .name = (valid)
#define CHOICE(values) .choices = (values)
#define TEXT(function) .text = (function)
#define NUMBER(function) .number = (function)
#define WITHIN(first, last, error) .low = (first), .high = (last), .outside = (error)
#define PART(function) .part = (function)
#define ROWS(table) .rows = (table), .count = COUNT_OF(table)
#define UNIQUE .unique = ""
#define UNIQUE_BY(member) .unique = (member)

#define rule_rows(c, at, object, table) rule_apply(c, at, object, table, COUNT_OF(table))
/* A single row: rule_one(c, at, spec, "nodeName", IF_SET, NAME(subdomain_valid)). */
#define rule_one(c, at, object, ...) rule_apply(c, at, object, &(const struct rule){__VA_ARGS__}, 1)
void rule_apply(struct check *c, const struct at *at, const struct json_node *object,
                const struct rule *rules, size_t count);

/* Members that an update may not change, separated by commas; "a=b": a, which errors call b. */
void rule_fixed(struct check *c, const struct at *at, const struct json_node *object,
                const struct json_node *old, const char *members);

#endif
