package main

import (
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
)

var (
	elfMachines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	machoCPUs   = map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}
)

// check returns an error unless a file is a program for that system and architecture without dependencies. On Darwin, where system
// calls need the system's library, it may depend on what is in every macOS.
func check(path, system, arch string) error {
	switch system {
	case "linux":
		return checkELF(path, arch)
	case "darwin":
		return checkMachO(path, arch)
	}
	return fmt.Errorf("nothing is known of %s/%s", system, arch)
}

func checkELF(path, arch string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if want, known := elfMachines[arch]; !known || f.Machine != want {
		return fmt.Errorf("it is for %s, not for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically; build it with CGO_ENABLED=0")
		}
	}
	return nil
}

func checkMachO(path, arch string) error {
	f, err := macho.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if want, known := machoCPUs[arch]; !known || f.Cpu != want {
		return fmt.Errorf("it is for %s, not for %s", f.Cpu, arch)
	}
	return nil
}
