/*
 * The canonical form of quantities, as Kubernetes' resource.Quantity writes them: "1000m" is "1",
 * "1024Mi" is "1Gi", "0.5" is "500m". Texts that Kubernetes keeps as they are, although they are
 * not canonical ("1E3", "+1"), are kept.
 */
#ifndef VIGIL_KUBE_TYPES_DEFAULTS_QUANTITY_H
#define VIGIL_KUBE_TYPES_DEFAULTS_QUANTITY_H

#include "base/slice.h"

enum { QUANTITY_BYTES = 64 };

/*
 * Writes the canonical form of a quantity that is valid (kube/types/schema/go_value.h). milli:
 * rounds up to thousandths, as for resource lists. Returns the text itself if it is canonical, or
 * if it has more digits than fit in 128 bits, or a part of `to`.
 */
struct slice quantity_canonical(struct slice text, bool milli, char to[QUANTITY_BYTES]);

/* -- Values -- */

__extension__ typedef unsigned __int128 quantity_amount;

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

/* amount × 10^scale. A zeroed one is 0. */
struct quantity {
    quantity_amount amount;
    int scale;
    enum quantity_format format;
    bool negative;
    bool kept; /* Kubernetes keeps the text, unless the value is rounded or changed */
};

/* False: it has too many digits. */
MUST_CHECK
bool quantity_read(struct slice text, struct quantity *ret_quantity);
/* The canonical form, in `to` or constant. */
struct slice quantity_write(const struct quantity *quantity, char to[QUANTITY_BYTES]);

/* Away from zero, to this power of ten. */
void quantity_round_up(struct quantity *quantity, int scale);
/* Adds a quantity; both may not be negative. False: the sum does not fit. */
MUST_CHECK
bool quantity_add(struct quantity *to, const struct quantity *more);
/* Takes a quantity away; at least 0 is left. Both may not be negative. */
void quantity_subtract(struct quantity *from, const struct quantity *less);
/* Negative, zero or positive, for quantities that are not negative. */
int quantity_compare(const struct quantity *a, const struct quantity *b);

#endif
