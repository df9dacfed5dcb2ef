# `cpack` in the build folder makes a Debian package of all that is
# installed. It can be taken along to any Debian 12: what it needs there is what it was linked with,
# found out by dpkg-shlibdeps, and the debuggers and recorders that it starts.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tailtrace)
set(CPACK_PACKAGE_VENDOR tailtrace)
set(CPACK_PACKAGE_CONTACT "The tailtrace authors <tailtrace@invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "See how a program came to where it stopped, and step back")
set(CPACK_PACKAGE_DESCRIPTION
  "A branch-trace backend for debuggers. It keeps the newest branches of every thread in a buffer
that overwrites itself, and lets GDB, LLDB, Python and a command line walk what was executed, in
either direction: by the processor's own tracing, or under qemu-user where there is none.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/triggers)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gdb, gdbserver, qemu-user")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "lldb-22, python3-numpy, python3-pandas")
if(TAILTRACE_PYTHON_VERSION)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3 (>= ${TAILTRACE_PYTHON_VERSION})")
endif()
include(CPack)
