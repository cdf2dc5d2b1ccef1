/*
 * Decimal numbers of any length, as Kubernetes' quantities have them beyond 64 bits. They are in
 * the arena of an evaluation, and their digits are charged to its work.
 */
#ifndef VIGIL_CEL_LIBRARY_DECIMAL_H
#define VIGIL_CEL_LIBRARY_DECIMAL_H

#include "base/slice.h"
#include "cel/value/work.h"

/* A longer number is not made. */
enum { CEL_DECIMAL_DIGITS_MAX = 1 << 20 };

/* digits × 10^-scale. The digits are numbers from 0 to 9, the first of them is not 0, and zero has
 * none; they are never changed, so that several decimals may share them. */
struct cel_decimal {
    const uint8_t *digits;
    size_t count;
    int32_t scale;
    bool negative;
};

/* All of these are false without memory or work, and if there would be too many digits. */

/* The digits of a text; leading zeros are dropped. */
MUST_CHECK
bool cel_decimal_read(struct cel_work *work, struct slice digits, struct cel_decimal *ret_decimal);
MUST_CHECK
bool cel_decimal_of_int(struct cel_work *work, int64_t value, int32_t scale,
                        struct cel_decimal *ret_decimal);
/* Multiplies it by a small number. */
MUST_CHECK
bool cel_decimal_multiply(struct cel_work *work, struct cel_decimal *decimal, uint32_t factor);
/* Gives it this scale; away from zero if digits are lost. */
MUST_CHECK
bool cel_decimal_round_up(struct cel_work *work, struct cel_decimal *decimal, int32_t scale);
/* Has the larger scale of both. */
MUST_CHECK
bool cel_decimal_add(struct cel_work *work, const struct cel_decimal *a,
                     const struct cel_decimal *b, struct cel_decimal *ret_sum);

/* Negative, zero or positive. */
int cel_decimal_compare(struct cel_work *work, const struct cel_decimal *a,
                        const struct cel_decimal *b);

/* The double that is nearest to the digits, without the scale. */
MUST_CHECK
bool cel_decimal_unscaled(struct cel_work *work, const struct cel_decimal *decimal,
                          double *ret_number);

#endif
