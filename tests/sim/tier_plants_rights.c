/* Planted bugs of the watch tier's reviews of tokens and rights (plants.h). */
#include "plants.h"
#include "tier/rights/rights.h"

void __real_tier_rights_changed(struct tier_rights *rights);
void __wrap_tier_rights_changed(struct tier_rights *rights);
void __wrap_tier_rights_changed(struct tier_rights *rights)
{
    if (!plant_is(PLANT_TIER_KEEPS))
        __real_tier_rights_changed(rights);
}

void __real_tier_may(struct tier_rights *rights, struct tier_right_wait *wait,
                     struct tier_user *user, const struct tier_access *access);
void __wrap_tier_may(struct tier_rights *rights, struct tier_right_wait *wait,
                     struct tier_user *user, const struct tier_access *access);
void __wrap_tier_may(struct tier_rights *rights, struct tier_right_wait *wait,
                     struct tier_user *user, const struct tier_access *access)
{
    static const struct kube_status none;
    if (plant_is(PLANT_TIER_RIGHTS))
        wait->done(wait, TIER_ALLOWED, &none);
    else
        __real_tier_may(rights, wait, user, access);
}
