#!/bin/sh
# Finds or installs what the tests need in addition to Go: a real redis-server, haproxy and nginx as load balancers, tmux for tests of the
# live view, and a C compiler for the race detector. The argument adds: node: node and npm; ui: these and chromium, for the dashboard;
# deploy: promtool and systemd-analyze, which check deploy/; python: an interpreter, its packaging tools, and Node for the type checker;
# rust: cargo with its tools, and on Debian the crates that the SDK needs;
# lint: black, which formats Python; valkey: a valkey-server.
set -eu

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo "$@"; else
    echo "root is needed for: $*" >&2
    return 1
  fi
}

updated=
install_package() { # name on apt, on dnf, on apk, on brew
  if command -v apt-get >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # words
    [ "$updated" = "for ${apt_sources-}" ] || as_root apt-get -o Acquire::Retries=3 ${apt_sources-} update -qq
    updated="for ${apt_sources-}"
    # Debian's packages start servers, which the tests do not use; policy-rc.d prevents that.
    policy=/usr/sbin/policy-rc.d
    if [ -e "$policy" ]; then policy=; else printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"; fi
    installed=0
    # shellcheck disable=SC2086 # words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 ${apt_sources-} install -y -qq --no-install-recommends "$1" \
      >/dev/null || installed=$?
    [ -z "$policy" ] || as_root rm -f "$policy"
    return "$installed"
  elif command -v dnf >/dev/null 2>&1; then as_root dnf install -y -q "$2"
  elif command -v apk >/dev/null 2>&1; then as_root apk add -q "$3"
  elif command -v brew >/dev/null 2>&1; then brew install -q "$4"
  else
    echo "no package manager that this script knows; install $1 yourself and run again" >&2
    return 1
  fi
}

command -v "${LUBDUB_TEST_REDIS_SERVER:-redis-server}" >/dev/null 2>&1 || install_package redis-server redis redis redis
# They may be in directories that only root has in its PATH.
for balancer in haproxy nginx; do
  command -v "$balancer" >/dev/null 2>&1 || [ -x "/usr/sbin/$balancer" ] || install_package "$balancer" "$balancer" "$balancer" "$balancer"
done
# A terminal for tests of the live view.
command -v tmux >/dev/null 2>&1 || install_package tmux tmux tmux tmux
command -v gcc >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || {
  if command -v apk >/dev/null 2>&1; then install_package gcc gcc build-base gcc
  elif command -v apt-get >/dev/null 2>&1; then install_package build-essential gcc gcc gcc
  else install_package gcc gcc gcc gcc; fi
}
if [ "${1-}" = node ] || [ "${1-}" = python ] || [ "${1-}" = ui ]; then
  command -v node >/dev/null 2>&1 || install_package nodejs nodejs nodejs node
  command -v npm >/dev/null 2>&1 || install_package npm npm npm node
  node --version
fi
if [ "${1-}" = python ]; then
  command -v python3 >/dev/null 2>&1 || install_package python3 python3 python3 python3
  for module in build wheel setuptools venv prometheus_client; do
    # The packages are for the system's interpreter, not for those of pyenv and the like.
    system=/usr/bin/python3
    [ -x "$system" ] || system=python3
    dashed=$(echo "$module" | tr _ -)
    "$system" -c "import $module, ensurepip" >/dev/null 2>&1 ||
      install_package "python3-$dashed" "python3-$module" "py3-$dashed" "python@3.13"
  done
fi
if [ "${1-}" = rust ]; then
  if command -v apt-get >/dev/null 2>&1; then
    for package in cargo rustc rust-clippy rustfmt librust-backtrace-dev librust-getrandom-dev librust-libc-dev librust-log-dev \
      librust-native-tls-dev librust-serde-derive-dev librust-serde-dev librust-serde-json-dev librust-ureq-dev librust-url-dev; do
      dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || install_package "$package" cargo cargo rust
    done
  else # cargo fetches the crates
    command -v cargo >/dev/null 2>&1 || install_package cargo cargo cargo rust
  fi
  sdk/rust/tools/cargo --version
fi
if [ "${1-}" = lint ]; then
  command -v black >/dev/null 2>&1 || install_package black python3-black black black
fi
if [ "${1-}" = ui ]; then
  command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    install_package chromium chromium chromium chromium
fi
if [ "${1-}" = valkey ] && ! command -v valkey-server >/dev/null 2>&1; then
  apt_sources=
  codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || codename=
  if [ "$codename" = bookworm ]; then # it is in the backports; the host's sources are not changed
    sources=$(mktemp)
    trap 'rm -f "$sources"' EXIT
    for suite in bookworm bookworm-updates bookworm-backports; do
      echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
    done >"$sources"
    chmod 644 "$sources"
    apt_sources="-o Dir::Etc::SourceList=$sources -o Dir::Etc::SourceParts=/dev/null"
  fi
  install_package valkey-server valkey valkey valkey
  apt_sources=
fi
if [ "${1-}" = deploy ]; then
  command -v promtool >/dev/null 2>&1 || install_package prometheus golang-github-prometheus prometheus prometheus
  command -v systemd-analyze >/dev/null 2>&1 || install_package systemd systemd systemd systemd
fi
"${LUBDUB_TEST_REDIS_SERVER:-redis-server}" --version
