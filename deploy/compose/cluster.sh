#!/bin/sh
# Creates a Redis Cluster, with a replica for each primary, from the nodes named as host:port, and returns when it serves.
# Run again, it keeps the Cluster and only updates the nodes' addresses, since containers return with other ones.
set -eu
first_host=${1%:*} first_port=${1#*:}
first() { redis-cli -e -h "$first_host" -p "$first_port" "$@"; }
nodes=
for node; do
  nodes="$nodes $(getent hosts "${node%:*}" | awk '{ print $1; exit }'):${node#*:}"
done
if first cluster info | grep -q cluster_slots_assigned:0; then
  # shellcheck disable=SC2086 # each is one argument
  redis-cli --cluster create $nodes --cluster-replicas 1 --cluster-yes
else
  for node in $nodes; do
    first cluster meet "${node%:*}" "${node#*:}"
  done
fi
until first cluster info | grep -q cluster_state:ok; do sleep 1; done
