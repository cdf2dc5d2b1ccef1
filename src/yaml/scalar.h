/*
 * What a plain scalar of YAML 1.1 means, as go-yaml reads it: yes and on are true, 017 is octal,
 * 1_000 is a number. Pure; any thread.
 */
#ifndef VIGIL_YAML_SCALAR_H
#define VIGIL_YAML_SCALAR_H

#include "base/macros.h"
#include "base/slice.h"

struct yaml_scalar {
    enum {
        YAML_SCALAR_TEXT,
        YAML_SCALAR_NULL,
        YAML_SCALAR_BOOL,
        YAML_SCALAR_INT,
        YAML_SCALAR_UINT,  /* larger than any int */
        YAML_SCALAR_FLOAT, /* also infinite, or not a number */
    } kind;
    union {
        bool truth;
        int64_t i;
        uint64_t u;
        double f;
    };
};

struct yaml_scalar yaml_scalar_of(struct slice text);

enum { YAML_NUMBER_BYTES = 40 };

/* A finite number with as many digits as are needed to read the same one. */
void yaml_float_text(double value, char text[YAML_NUMBER_BYTES]);
/* The key that a number becomes: Kubernetes writes it with the precision of a 32-bit float. */
void yaml_float_key(double value, char text[YAML_NUMBER_BYTES]);

#endif
