# Writes that fail.
cmake_language(DEFER CALL target_link_options engine_local_mirror_failure_test PRIVATE
    -Wl,--wrap=file_pwrite)

# Syncs that fail or wait.
cmake_language(DEFER CALL target_link_options engine_local_failure_test PRIVATE -Wl,--wrap=fdatasync)

# Steps of the keeper that fail or take long.
cmake_language(DEFER CALL target_link_options engine_local_keeper_keeper_test PRIVATE
    -Wl,--wrap=upkeep_checkpoint_begin,--wrap=upkeep_checkpoint_step,--wrap=upkeep_checkpoint_lags
    -Wl,--wrap=upkeep_checkpoint_lag_bytes,--wrap=upkeep_prepare_step,--wrap=upkeep_is_preparing
    -Wl,--wrap=upkeep_clean_begin,--wrap=upkeep_clean_step)
