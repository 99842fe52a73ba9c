// What the browser keeps under a name; where it keeps nothing for pages, as long as this one is open.

export function kept(kind, key) {
  let held = null;
  const asked = (use) => {
    try {
      return use(window[kind]); // who blocks a site's data has it throw
    } catch {
      return null;
    }
  };
  return {
    get: () => asked((store) => store.getItem(key)) ?? held,
    set: (value) => {
      held = value;
      asked((store) => store.setItem(key, value));
    },
    clear: () => {
      held = null;
      asked((store) => store.removeItem(key));
    },
  };
}
