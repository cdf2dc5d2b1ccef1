// Program histories records what concurrent clients do with Vigil and with a real etcd while both suffer the same faults,
// and checks the recordings. docs/histories.md explains the checks.
package main

import (
	"fmt"
	"strings"
)

// Outcome says what a client knows about its operation.
type Outcome string

const (
	Done    Outcome = "ok"
	Refused Outcome = "refused" // the server answered with an error: nothing was changed
	Unknown Outcome = "unknown" // no answer: it may have been executed, also after the client gave up
)

// KV is a key at one revision. A field that the API does not report is 0.
type KV struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Create  int64  `json:"create,omitempty"`
	Mod     int64  `json:"mod,omitempty"`
	Version int64  `json:"version,omitempty"`
	Lease   int64  `json:"lease,omitempty"`
}

// Compare is a condition of a transaction. Text is compared with the value, Number with the other fields.
type Compare struct {
	Key      string `json:"key"`
	Field    string `json:"field"`    // value, version, create or mod
	Relation string `json:"relation"` // =, !=, < or >
	Text     string `json:"text,omitempty"`
	Number   int64  `json:"number,omitempty"`
}

// Action is a get, put or delete of a key, or of all keys with a prefix.
type Action struct {
	Kind     string `json:"kind"`
	Key      string `json:"key"`
	Prefix   bool   `json:"prefix,omitempty"`
	Value    string `json:"value,omitempty"`
	Lease    int64  `json:"lease,omitempty"`
	Prev     bool   `json:"prev,omitempty"`     // the previous value was requested
	Revision int64  `json:"revision,omitempty"` // of a get from the past
}

// Result is the answer to an action: the keys that were read, or the previous ones.
type Result struct {
	KVs     []KV  `json:"kvs,omitempty"`
	Deleted int64 `json:"deleted,omitempty"`
}

// Op is one operation of one client. Those on keys are all written as transactions: a put is one without conditions.
// Times are nanoseconds of CLOCK_MONOTONIC, which all processes share.
type Op struct {
	Client  string  `json:"client"`
	Kind    string  `json:"op"`
	Call    int64   `json:"call"`
	Return  int64   `json:"return"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`

	Serializable bool      `json:"serializable,omitempty"`
	If           []Compare `json:"if,omitempty"`
	Then         []Action  `json:"then,omitempty"`
	Else         []Action  `json:"else,omitempty"`
	Succeeded    bool      `json:"succeeded,omitempty"`
	Results      []Result  `json:"results,omitempty"`
	Revision     int64     `json:"revision,omitempty"` // of the answer's header; 0: the API does not report it

	// The revision that the operation wrote according to the timeline, if its answer does not say it.
	Hint int64 `json:"-"`

	Lease int64  `json:"lease,omitempty"` // of grant, renew, revoke, ttl, lock
	TTL   int64  `json:"ttl,omitempty"`   // in seconds, as granted
	Lock  string `json:"lock,omitempty"`  // name of the lock
	Held  string `json:"held,omitempty"`  // the key that stands for the lock
}

// ran returns the actions that an answered operation has executed.
func (o *Op) ran() []Action {
	if o.Succeeded {
		return o.Then
	}
	return o.Else
}

// result is the answer to action i; an empty one if the API reports none.
func (o *Op) result(i int) Result {
	if i < len(o.Results) {
		return o.Results[i]
	}
	return Result{}
}

// wrote says whether an answered operation has changed a key.
func (o *Op) wrote() bool {
	for i, a := range o.ran() {
		if a.Kind == "put" || a.Kind == "delete" && o.result(i).Deleted > 0 {
			return true
		}
	}
	return false
}

func (o *Op) isKV() bool { return len(o.Then)+len(o.Else) > 0 }

// actions are those of both branches.
func (o *Op) actions() []Action {
	return append(o.Then[:len(o.Then):len(o.Then)], o.Else...)
}

func (a *Action) covers(key string) bool {
	if a.Prefix {
		return strings.HasPrefix(key, a.Key)
	}
	return key == a.Key
}

func (o *Op) String() string {
	text := fmt.Sprintf("%s %s %s [%d, %d]", o.Client, o.Kind, o.Outcome, o.Call, o.Return)
	if o.Revision > 0 {
		text += fmt.Sprintf(" at %d", o.Revision)
	}
	for _, c := range o.If {
		text += fmt.Sprintf(" if %s.%s%s%s%d", c.Key, c.Field, c.Relation, c.Text, c.Number)
	}
	if len(o.If) > 0 && o.Outcome == Done {
		text += fmt.Sprintf(" %v", o.Succeeded)
	}
	if o.Outcome == Done {
		for i, a := range o.ran() {
			text += fmt.Sprintf("; %s %s %s → %+v", a.Kind, a.Key, a.Value, o.result(i))
		}
	} else {
		text += fmt.Sprintf("%s%s: %s", branch("then", o.Then), branch("else", o.Else), o.Error)
	}
	if o.Lease != 0 {
		text += fmt.Sprintf(" lease %x", o.Lease)
	}
	return text + o.Lock
}

func branch(name string, actions []Action) (text string) {
	for _, a := range actions {
		text += fmt.Sprintf("; %s %s %s %s", name, a.Kind, a.Key, a.Value)
	}
	return text
}

func (k *KV) String() string {
	if k == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s=%s@%d (created %d, version %d, lease %x)", k.Key, k.Value, k.Mod, k.Create, k.Version, k.Lease)
}
