#include "codec/go_sort.h"

enum {
    INSERTION_MAX = 12,
    SHIFT_MIN = 50, /* shorter ranges are not repaired */
    SHIFTS_MAX = 5, /* pairs out of order that are repaired before the range is partitioned */
    NINTHER_MIN = 50,
    SWAPS_ALL = 12, /* all comparisons of a ninther found a pair out of order */
};

struct sorter {
    uint32_t *items;
    go_sort_less_fn *less;
    void *context;
};

/* Whether the item at one place is before the one at another. */
static bool less(const struct sorter *s, ptrdiff_t a, ptrdiff_t b)
{
    return s->less(s->context, s->items[a], s->items[b]);
}

static void swap(struct sorter *s, ptrdiff_t a, ptrdiff_t b)
{
    uint32_t item = s->items[a];
    s->items[a] = s->items[b];
    s->items[b] = item;
}

/* Moves the item at `from` to the left, past all that it is before. */
static void shift_left(struct sorter *s, ptrdiff_t first, ptrdiff_t from)
{
    for (ptrdiff_t i = from; i > first && less(s, i, i - 1); i--)
        swap(s, i, i - 1);
}

/* -- Heap sort, after too many bad pivots -- */

static void sift_down(struct sorter *s, ptrdiff_t begin, ptrdiff_t root, ptrdiff_t count)
{
    for (;;) {
        ptrdiff_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && less(s, begin + child, begin + child + 1))
            child++;
        if (!less(s, begin + root, begin + child))
            return;
        swap(s, begin + root, begin + child);
        root = child;
    }
}

static void heap_sort(struct sorter *s, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t count = end - begin;
    for (ptrdiff_t i = (count - 1) / 2; i >= 0; i--)
        sift_down(s, begin, i, count);
    for (ptrdiff_t i = count - 1; i >= 0; i--) {
        swap(s, begin, begin + i);
        sift_down(s, begin, 0, i);
    }
}

/* -- Pivots -- */

/* The place of the median of three. */
static ptrdiff_t median(const struct sorter *s, ptrdiff_t a, ptrdiff_t b, ptrdiff_t c, int *swaps)
{
    ptrdiff_t first;
    if (less(s, b, a)) {
        ++*swaps;
        first = a, a = b, b = first;
    }
    if (less(s, c, b)) {
        ++*swaps;
        b = c;
    }
    if (less(s, b, a)) {
        ++*swaps;
        return a;
    }
    return b;
}

/* The place of a pivot, and how many of the comparisons found a pair out of order. */
static ptrdiff_t choose_pivot(const struct sorter *s, ptrdiff_t begin, ptrdiff_t end,
                              int *ret_swaps)
{
    ptrdiff_t quarter = (end - begin) / 4;
    ptrdiff_t a = begin + quarter, b = begin + 2 * quarter, c = begin + 3 * quarter;
    int swaps = 0;
    if (end - begin >= NINTHER_MIN) {
        a = median(s, a - 1, a, a + 1, &swaps);
        b = median(s, b - 1, b, b + 1, &swaps);
        c = median(s, c - 1, c, c + 1, &swaps);
    }
    b = median(s, a, b, c, &swaps);
    *ret_swaps = swaps;
    return b;
}

static unsigned bit_length(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* Exchanges three items in the middle with others that depend only on the length. */
static void break_patterns(struct sorter *s, ptrdiff_t begin, ptrdiff_t end)
{
    uint64_t length = (uint64_t)(end - begin), random = length;
    uint64_t mask = (UINT64_C(1) << bit_length(length)) - 1;
    ptrdiff_t middle = begin + (ptrdiff_t)(length / 4 * 2);
    for (ptrdiff_t i = middle - 1; i <= middle + 1; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t other = random & mask;
        if (other >= length)
            other -= length;
        swap(s, i, begin + (ptrdiff_t)other);
    }
}

/* -- Partitions -- */

/* Repairs a few pairs of a range that is almost sorted. True: it is sorted now. */
static bool repair(struct sorter *s, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t i = begin + 1;
    for (int shifts = 0; shifts < SHIFTS_MAX; shifts++) {
        while (i < end && !less(s, i, i - 1))
            i++;
        if (i == end)
            return true;
        if (end - begin < SHIFT_MIN)
            return false;
        swap(s, i, i - 1);
        if (i - begin >= 2)
            shift_left(s, 0, i - 1); /* like Go, does not stop at the beginning of the range */
        if (end - i >= 2)
            for (ptrdiff_t j = i + 1; j < end && less(s, j, j - 1); j++)
                swap(s, j, j - 1);
    }
    return false;
}

/* Moves the items that are not before the pivot behind those that are, and returns its place. */
static ptrdiff_t partition(struct sorter *s, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t pivot,
                           bool *ret_was_partitioned)
{
    ptrdiff_t i = begin + 1, j = end - 1;
    swap(s, begin, pivot);
    *ret_was_partitioned = true;
    for (;;) {
        while (i <= j && less(s, i, begin))
            i++;
        while (i <= j && !less(s, j, begin))
            j--;
        if (i > j)
            break;
        *ret_was_partitioned = false;
        swap(s, i++, j--);
    }
    swap(s, j, begin);
    return j;
}

/* Nothing is before the pivot. Returns where the items begin that are behind it. */
static ptrdiff_t partition_equal(struct sorter *s, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t pivot)
{
    ptrdiff_t i = begin + 1, j = end - 1;
    swap(s, begin, pivot);
    for (;;) {
        while (i <= j && !less(s, begin, i))
            i++;
        while (i <= j && less(s, begin, j))
            j--;
        if (i > j)
            return i;
        swap(s, i++, j--);
    }
}

/* The larger part of a partition is sorted by the loop, so that the recursion is not deep. */
static void sort(struct sorter *s, ptrdiff_t begin, ptrdiff_t end, unsigned bad_pivots_left)
{
    bool was_balanced = true, was_partitioned = true;
    int swaps;
    while (end - begin > INSERTION_MAX) {
        ptrdiff_t length = end - begin;
        if (!bad_pivots_left) {
            heap_sort(s, begin, end);
            return;
        }
        if (!was_balanced) {
            break_patterns(s, begin, end);
            bad_pivots_left--;
        }
        ptrdiff_t pivot = choose_pivot(s, begin, end, &swaps);
        if (swaps == SWAPS_ALL) {
            for (ptrdiff_t i = begin, j = end - 1; i < j; i++, j--)
                swap(s, i, j);
            pivot = end - 1 - (pivot - begin);
            swaps = 0;
        }
        if (was_balanced && was_partitioned && swaps == 0 && repair(s, begin, end))
            return;
        /* The item before the range is a former pivot: if this one is equal to it, many are. */
        if (begin > 0 && !less(s, begin - 1, pivot)) {
            begin = partition_equal(s, begin, end, pivot);
            continue;
        }
        ptrdiff_t middle = partition(s, begin, end, pivot, &was_partitioned);
        ptrdiff_t left = middle - begin, right = end - middle;
        was_balanced = (left < right ? left : right) >= length / 8;
        if (left < right) {
            sort(s, begin, middle, bad_pivots_left);
            begin = middle + 1;
        } else {
            sort(s, middle + 1, end, bad_pivots_left);
            end = middle;
        }
    }
    for (ptrdiff_t i = begin + 1; i < end; i++)
        shift_left(s, begin, i);
}

void go_sort(uint32_t *items, size_t count, go_sort_less_fn *less_fn, void *context)
{
    struct sorter s = {.less = less_fn, .context = context};
    s.items = items;
    sort(&s, 0, (ptrdiff_t)count, bit_length(count));
}
