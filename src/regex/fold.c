#include "regex/fold.h"

/* A delta of 0: the characters are pairs, each of which folds to the other. */
static const struct fold {
    uint32_t low, high;
    int32_t delta;
} folds[] = {
#define R(low, high)
#define UNICODE_CLASS(name, first, count)
#define UNICODE_UNION(name, parts)
#define UNICODE_FOLD(low, high, delta) {low, high, delta},
#define UNICODE_FOLD_PAIRS(low, high) {low, high, 0},
#include "regex/unicode.inc"
};

size_t regex_fold_find(uint32_t low)
{
    size_t from = 0, to = COUNT_OF(folds);
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (folds[middle].high < low)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool regex_fold_at(size_t row, uint32_t low, uint32_t high, uint32_t *ret_low, uint32_t *ret_high)
{
    if (row == COUNT_OF(folds) || folds[row].low > high)
        return false;
    const struct fold *fold = &folds[row];
    low = low > fold->low ? low : fold->low;
    high = high < fold->high ? high : fold->high;
    if (fold->delta) {
        *ret_low = (uint32_t)((int32_t)low + fold->delta);
        *ret_high = (uint32_t)((int32_t)high + fold->delta);
    } else { /* whole pairs, which include the other half of the first and the last one */
        *ret_low = low - (low - fold->low) % 2;
        *ret_high = high + 1 - (high - fold->low) % 2;
    }
    return true;
}
