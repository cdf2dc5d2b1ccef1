/*
 * The tree of a regular expression, made by parse.c. Groups of sequences within a sequence, and of
 * alternatives within alternatives, are not nested, so that the height of a tree is limited, as in
 * Go. In an arena; only needed until the program is compiled.
 */
#ifndef VIGIL_REGEX_TREE_H
#define VIGIL_REGEX_TREE_H

#include "regex/regex_private.h"

enum regex_node_op {
    REGEX_NODE_EMPTY,
    REGEX_NODE_RUNE,
    REGEX_NODE_CLASS,
    REGEX_NODE_AT,
    REGEX_NODE_GROUP, /* (captured): does what its child does */
    REGEX_NODE_SEQUENCE,
    REGEX_NODE_ALTERNATIVES,
    REGEX_NODE_REPEAT,
};

struct regex_node {
    uint8_t op;       /* enum regex_node_op */
    bool lazy;        /* a repeat prefers to end */
    bool nullable;    /* may match without consuming a character */
    uint16_t height;  /* as Go counts it */
    uint16_t repeats; /* the product of counted repeats within each other */
    int16_t min, max; /* limits of a repeat; max -1: unlimited */
    union {
        uint32_t rune;
        enum regex_place place;
        const struct regex_class *class;
        struct regex_node *first; /* the children */
    };
    struct regex_node *last;
    struct regex_node *next; /* in the list of the parent */
};

struct regex_parser {
    struct arena *arena;   /* for classes, which become parts of the program */
    struct arena *scratch; /* for the tree */
    struct slice pattern;
    size_t *steps_left;
    struct error *error;
};

/* Subtracts from the steps that are left. ST_LIMIT with an error if there are too few. */
MUST_CHECK
enum status regex_spend(struct regex_parser *parser, size_t steps);
/* ST_LIMIT, with an error that has Go's text. */
enum status regex_too_large(struct regex_parser *parser);

/* ST_INVALID: the error has Go's text. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status regex_parse(struct regex_parser *parser, struct regex_node **ret_root);

#endif
