# Writes that fail.
cmake_language(DEFER CALL target_link_options engine_local_mirror_failure_test PRIVATE
    -Wl,--wrap=file_pwrite)

# Syncs that fail or wait.
cmake_language(DEFER CALL target_link_options engine_local_failure_test PRIVATE -Wl,--wrap=fdatasync)

# Steps of the keeper that fail or take long.
cmake_language(DEFER CALL target_link_options engine_local_keeper_keeper_test PRIVATE
    -Wl,--wrap=keeper_checkpoint_begin,--wrap=keeper_checkpoint_step,--wrap=keeper_checkpoint_lags
    -Wl,--wrap=keeper_checkpoint_lag_bytes,--wrap=keeper_prepare_step,--wrap=keeper_is_preparing
    -Wl,--wrap=keeper_clean_begin,--wrap=keeper_clean_step)
