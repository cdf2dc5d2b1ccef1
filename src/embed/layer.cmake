# Syncs that fail or wait (src/embed/fixture_test.h).
foreach(test callback direct embed failure group)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options embed_${test}_test PRIVATE -Wl,--wrap=fdatasync)")
endforeach()
